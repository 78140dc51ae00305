import { execFile } from "node:child_process";
import { checkoutRoot } from "../stack/paths";
import { pythonEnvironment } from "../stack/python";
import { sayOnStderr as say } from "../stack/say";
import { lockPath, RUNTIME_LOCKS } from "./python-locks";

/**
 * `unreachable`: the advisory database did not answer, so it is unknown whether there are
 * advisories.
 */
type Verdict = "clean" | "vulnerable" | "unreachable";

interface Ended {
  stdout: string;
  stderr: string;
}

const run = (program: string, args: string[]): Promise<Ended> =>
  new Promise((resolve) => {
    const options = { cwd: checkoutRoot(), maxBuffer: 64 * 1024 * 1024 };
    execFile(program, args, options, (_error, stdout, stderr) => resolve({ stdout, stderr }));
  });

/**
 * Parses the JSON output of `npm audit` or pip-audit; undefined if it is not JSON. Both exit with 1
 * for advisories and for failures, so only their output shows the difference.
 */
function parse<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

export function judgeNpm(stdout: string): { verdict: Verdict; text: string } {
  const report = parse<{
    error?: unknown;
    vulnerabilities?: Record<string, { severity: string; range: string }>;
  }>(stdout);
  if (!report?.vulnerabilities || report.error) return { verdict: "unreachable", text: "" };
  const found = Object.entries(report.vulnerabilities);
  const lines = found.map(([name, { severity, range }]) => `  ${severity}: ${name} ${range}`);
  return { verdict: found.length > 0 ? "vulnerable" : "clean", text: lines.join("\n") };
}

export function judgePython(stdout: string): { verdict: Verdict; text: string } {
  const report = parse<{
    dependencies: { name: string; version?: string; vulns?: { id: string }[] }[];
  }>(stdout);
  if (!report?.dependencies) return { verdict: "unreachable", text: "" };
  const lines = report.dependencies.flatMap(({ name, version, vulns = [] }) =>
    vulns.map(({ id }) => `  ${id}: ${name} ${version}`),
  );
  return { verdict: lines.length > 0 ? "vulnerable" : "clean", text: lines.join("\n") };
}

/**
 * `npm run audit [-- --offline-ok]`: checks the packages of server, workers and SDK for
 * vulnerabilities.
 */
async function main(): Promise<number> {
  const offlineOk = process.argv.includes("--offline-ok");
  let code = 0;
  const report = (what: string, judged: { verdict: Verdict; text: string }, ended: Ended): void => {
    say(`${what}: ${judged.verdict}`);
    if (judged.text) say(judged.text);
    if (judged.verdict === "unreachable") {
      say("  could not reach the advisory database:");
      say(`  ${ended.stderr.trim().split("\n").slice(-2).join("\n  ")}`);
    }
    if (judged.verdict === "vulnerable" || (judged.verdict === "unreachable" && !offlineOk))
      code = 1;
  };
  const npm = await run("npm", ["audit", "--omit=dev", "--json"]);
  report("npm packages", judgeNpm(npm.stdout), npm);
  const python = await pythonEnvironment(say, ["audit"]);
  // The lock files list all packages, so pip_audit does not need pip to resolve or install them.
  const options = ["--require-hashes", "--disable-pip", "--format=json", "--progress-spinner=off"];
  for (const name of RUNTIME_LOCKS) {
    const service = ["--vulnerability-service=osv", "-r", lockPath(name)];
    const ended = await run(python, ["-m", "pip_audit", ...options, ...service]);
    report(`requirements/${name}.txt`, judgePython(ended.stdout), ended);
  }
  return code;
}

if (require.main === module) {
  main().then(
    (code) => process.exit(code),
    (error: unknown) => {
      say(error instanceof Error ? error.message : String(error));
      process.exit(1);
    },
  );
}
