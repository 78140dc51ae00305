import { execFile } from "node:child_process";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import type { Outcome, Step, Variables } from "./sdk-contract";

/** A scenario, with the server and key to run it with. */
export interface Assignment {
  steps: Step[];
  base_url: string;
  /** The URL that the runner posts to before each step. */
  step_url: string;
  keys: Record<string, string>;
  variables: Variables;
  /** Time-outs of each client, in seconds. */
  limits?: { timeout?: number };
}

export type Runner = (assignments: Assignment[]) => Promise<Outcome[][]>;

const SDKS = join(checkoutRoot(), "sdk");

/** Forge's clients by name. Each can run any scenario. */
export const RUNNERS: Record<string, Runner> = {
  Python: (assignments) => runPython([], assignments),
  "Python, by awaiting": (assignments) => runPython(["--async"], assignments),
  TypeScript: (assignments) =>
    runScript(
      process.execPath,
      [join(SDKS, "typescript", "test", "contract-runner.mjs")],
      {},
      assignments,
    ),
};

/**
 * The clients to test. `npm run test:slow` tests all clients. Other runs test only TypeScript and
 * one of the two Python clients, because `e2e/sdk-contract` proves that the two Python clients
 * behave the same.
 */
export const DIFFERENT_CLIENTS = Object.keys(RUNNERS).filter(
  (client) => process.env.TEST_SLOW || !/awaiting/.test(client),
);

async function runPython(flags: string[], assignments: Assignment[]): Promise<Outcome[][]> {
  const python = await pythonEnvironment(saySilently, ["sdk"]);
  const script = join(SDKS, "python", "tests", "contract_runner.py");
  const env = {
    PYTHONPATH: join(SDKS, "python", "src"),
    // Progress output is for people only.
    FORGE_PROGRESS: "0",
  };
  return await runScript(python, ["-X", "dev", "-W", "error", script, ...flags], env, assignments);
}

async function runScript(
  program: string,
  args: string[],
  env: Record<string, string>,
  assignments: Assignment[],
): Promise<Outcome[][]> {
  return await new Promise((resolve, reject) => {
    const options = {
      env: { ...process.env, ...env },
      timeout: 120_000,
      maxBuffer: 64 << 20,
    };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stderr}`));
      else resolve(JSON.parse(stdout) as Outcome[][]);
    });
    child.stdin?.end(JSON.stringify(assignments));
  });
}
