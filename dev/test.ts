import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { checkoutRoot } from "./stack/paths";
import { pythonEnvironment } from "./stack/python";
import { canHaveS3Server, s3Binary } from "./stack/s3-server";
import { sayOnStderr as say } from "./stack/say";
import { temporalBinary } from "./stack/temporal-binary";

interface Tally {
  passed: number;
  failed: number;
  /** What failed, and why in short: told once more at the end, where the output may be cut. */
  failures?: string[];
}

/** Run when named only. */
const SLOW_SUITES: Record<string, () => Promise<Tally>> = {
  // With it those whose short form runs every time.
  slow: () =>
    jest(
      "slow",
      [
        "test/slow",
        "test/faults/handlers",
        "test/faults/pipelines",
        "test/faults/billing",
        "test/e2e/large-",
      ],
      {
        FORGE_SLOW: "1",
      },
    ),
};

/** Each file has a stack of its own, and mostly waits: on two cores two of them are no slower than one. */
const SIDE_BY_SIDE = ["--maxWorkers=2"];

const SUITES: Record<string, () => Promise<Tally>> = {
  lint,
  unit: () =>
    jest("unit", [
      "core",
      "infra",
      "agent-bridge",
      "api",
      "activities",
      "workflows",
      "dev/openapi",
      "sdk/typescript",
    ]),
  e2e: () => jest("e2e", ["test/e2e", ...SIDE_BY_SIDE]),
  contract: () => jest("contract", ["test/contract", ...SIDE_BY_SIDE]),
  faults: () => jest("faults", ["test/faults", ...SIDE_BY_SIDE]),
  python,
  bench: () => checks([["dist/dev/bench/bench.js", "--short"]]),
};

/** `npm test [-- suite …]`: every suite, or those named; ends with one line of totals. */
async function main(): Promise<void> {
  const named = process.argv.slice(2);
  const all = { ...SUITES, ...SLOW_SUITES };
  const unknown = named.find((name) => !(name in all));
  if (unknown) throw new Error(`no suite "${unknown}"; there are ${Object.keys(all).join(", ")}`);
  const chosen = named.length > 0 ? named : Object.keys(SUITES);
  // Before the clock of any test runs.
  if (chosen.some((name) => ["e2e", "contract", "faults", "bench", "slow"].includes(name))) {
    await temporalBinary(say);
    await pythonEnvironment(say, ["runtime", "train", "sdk"]);
  }
  if (chosen.includes("e2e")) {
    await pythonEnvironment(say, ["terminal"]);
    if (canHaveS3Server()) await s3Binary(say);
    else say("There is no Go here to build an S3 server with: tests against one are left out");
  }
  if (chosen.includes("contract") || chosen.includes("slow")) {
    await pythonEnvironment(say, ["contract"]);
  }
  const total: Tally = { passed: 0, failed: 0 };
  const failures: string[] = [];
  for (const name of chosen) {
    const started = performance.now();
    say(`\n== ${name}`);
    const tally = await all[name as keyof typeof all]?.();
    if (!tally) continue;
    total.passed += tally.passed;
    total.failed += tally.failed;
    const seconds = Math.round((performance.now() - started) / 1000);
    say(`== ${name}: ${tally.passed} passed, ${tally.failed} failed, ${seconds} s`);
    failures.push(...(tally.failures ?? []).map((failure) => `${name}: ${failure}`));
  }
  for (const failure of failures) say(`\nFAILED ${failure}`);
  process.stdout.write(`\n${total.passed} passed, ${total.failed} failed\n`);
  process.exitCode = total.failed === 0 ? 0 : 1;
}

/** Runs a program with our terminal, in the checkout; its exit code. */
async function run(
  program: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<number> {
  const child = spawn(program, args, {
    cwd: checkoutRoot(),
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  return await new Promise((resolve) => {
    child.once("error", () => resolve(127));
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

/** Commands that pass or fail as a whole; those without a path to a program are run by Node. */
async function checks(commands: string[][], program = process.execPath): Promise<Tally> {
  const tally = { passed: 0, failed: 0, failures: [] as string[] };
  for (const command of commands) {
    say(`-- ${command.join(" ")}`);
    if ((await run(program, command)) === 0) tally.passed += 1;
    else {
      tally.failed += 1;
      tally.failures.push(command.join(" "));
    }
  }
  return tally;
}

const ROOMS = ["core", "infra", "workflows", "activities", "api", "agent-bridge", "bin", "dev"];

async function lint(): Promise<Tally> {
  const tally = await checks([
    ["node_modules/@biomejs/biome/bin/biome", "ci", "--error-on-warnings"],
    ["node_modules/knip/bin/knip.js"],
    ["dist/dev/openapi/openapi.js"],
    ["node_modules/typescript/bin/tsc", "-p", "sdk/typescript/tsconfig.test.json"],
    ["node_modules/typescript/bin/tsc", "-p", "sdk/typescript/tsconfig.browser.json"],
    [
      "node_modules/dependency-cruiser/bin/dependency-cruise.mjs",
      "--config",
      ".dependency-cruiser.cjs",
      ...ROOMS,
      "test",
      "sdk/typescript/src",
      "dist/workflows",
    ],
  ]);
  const hasShellcheck = (await run("sh", ["-c", "command -v shellcheck >/dev/null"])) === 0;
  if (!hasShellcheck) {
    say("-- shellcheck is not installed; scripts are not checked here");
    return tally;
  }
  return add(tally, await checks([[".ci/run"], ["infra/bootstrap/bootstrap.sh"]], "shellcheck"));
}

async function jest(
  suite: string,
  paths: string[],
  env: Record<string, string> = {},
): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), "forge-jest-"));
  const report = join(folder, `${suite}.json`);
  try {
    const options = ["--json", `--outputFile=${report}`, ...paths];
    await run(process.execPath, ["node_modules/jest/bin/jest.js", ...options], env);
    return tallyOf(JSON.parse(readFileSync(report, "utf8")) as JestReport);
  } catch (error) {
    say(`jest left no report: ${String(error)}`);
    return { passed: 0, failed: 1 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface JestReport {
  numPassedTests: number;
  numFailedTests: number;
  numRuntimeErrorTestSuites: number;
  testResults: {
    name: string;
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

function tallyOf(report: JestReport): Tally {
  const failures = report.testResults.flatMap(({ name, message, assertionResults }) => {
    const file = relative(checkoutRoot(), name);
    const failed = assertionResults.filter((test) => test.status === "failed");
    // Without a test of its own the file itself could not be run.
    if (failed.length === 0) return assertionResults.length === 0 ? [inShort(file, message)] : [];
    return failed.map((test) =>
      inShort(`${file}: ${test.fullName}`, test.failureMessages.join("\n")),
    );
  });
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + report.numRuntimeErrorTestSuites,
    failures,
  };
}

const inShort = (name: string, message: string): string =>
  [name, ...stripVTControlCharacters(message).trim().split("\n").slice(0, 20)].join("\n  ");

async function python(): Promise<Tally> {
  const interpreter = await pythonEnvironment(say, ["runtime", "train", "tests", "sdk"]);
  const sources = ["agent", "compute", "sdk/python", "dev/sample-data"];
  const tally = await checks(
    [
      ["-m", "ruff", "check", ...sources],
      ["-m", "ruff", "format", "--check", ...sources],
      ["-m", "mypy", "agent/src", "compute/src", "sdk/python/src", "dev/sample-data"],
    ],
    interpreter,
  );
  return add(tally, await pytest(interpreter));
}

const FAILED_CASE = /<testcase classname="([^"]*)" name="([^"]*)"[^>]*><(?:failure|error)/g;

async function pytest(interpreter: string): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), "forge-pytest-"));
  const report = join(folder, "report.xml");
  try {
    await run(interpreter, ["-m", "pytest", "-q", `--junitxml=${report}`]);
    const xml = readFileSync(report, "utf8");
    const count = (name: string): number => Number(new RegExp(` ${name}="(\\d+)"`).exec(xml)?.[1]);
    const failed = count("failures") + count("errors");
    const failures = [...xml.matchAll(FAILED_CASE)].map(([, file, test]) => `${file}: ${test}`);
    return { passed: count("tests") - failed - count("skipped"), failed, failures };
  } catch (error) {
    say(`pytest left no report: ${String(error)}`);
    return { passed: 0, failed: 1 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const add = (a: Tally, b: Tally): Tally => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  failures: [...(a.failures ?? []), ...(b.failures ?? [])],
});

main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
