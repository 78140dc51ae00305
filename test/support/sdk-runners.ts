import { execFile } from "node:child_process";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import type { Outcome, Step, Variables } from "./sdk-contract";

/** A scenario, and where and as whom it is to be run. */
export interface Assignment {
  steps: Step[];
  base_url: string;
  /** Posted to before each step. */
  step_url: string;
  keys: Record<string, string>;
  variables: Variables;
  /** Of each client, in seconds. */
  limits?: { timeout?: number };
}

export type Runner = (assignments: Assignment[]) => Promise<Outcome[][]>;

/** Each client that Forge has, by name: all of them do what a scenario says. */
export const RUNNERS: Record<string, Runner> = {
  Python: (assignments) => runPython([], assignments),
  "Python, by awaiting": (assignments) => runPython(["--async"], assignments),
};

const SDK = join(checkoutRoot(), "sdk", "python");

async function runPython(flags: string[], assignments: Assignment[]): Promise<Outcome[][]> {
  const python = await pythonEnvironment(saySilently, ["sdk"]);
  const env = {
    ...process.env,
    PYTHONPATH: join(SDK, "src"),
    PYTHONDONTWRITEBYTECODE: "1",
    // Progress is for people.
    FORGE_PROGRESS: "0",
  };
  const script = join(SDK, "tests", "contract_runner.py");
  return await new Promise((resolve, reject) => {
    const args = ["-X", "dev", "-W", "error", script, ...flags];
    const options = { env, timeout: 120_000, maxBuffer: 64 << 20 };
    const child = execFile(python, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stderr}`));
      else resolve(JSON.parse(stdout) as Outcome[][]);
    });
    child.stdin?.end(JSON.stringify(assignments));
  });
}
