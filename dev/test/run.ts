import { type ChildProcess, spawn } from "node:child_process";
import { checkoutRoot } from "../stack/paths";
import { killGroup } from "../stack/process";

export interface Ended {
  code: number;
  /** Both streams; empty if they were inherited. */
  output: string;
}

const running = new Set<ChildProcess>();
let isEnding = false;

/** Runs a program in the checkout, with the inherited terminal. */
export const runHere = (
  program: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<Ended> => run(program, args, { env, stdio: "inherit" });

/** Runs a program in the checkout and returns its output instead of printing it. */
export const runQuietly = (program: string, args: string[]): Promise<Ended> =>
  run(program, args, { env: {}, stdio: "pipe" });

/** Ends all running programs with their process groups. From now on, no others start. */
export async function endRunning(): Promise<void> {
  isEnding = true;
  // Wait only for programs that have not exited. A program that has exited stays in `running` while
  // another process keeps its output open, but does not emit `exit` again.
  const live = [...running].filter(
    ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
  );
  const ends = live.map((child) => new Promise((resolve) => child.once("exit", resolve)));
  for (const { pid } of running) if (pid !== undefined) killGroup(pid);
  await Promise.all(ends);
}

async function run(
  program: string,
  args: string[],
  { env, stdio }: { env: Record<string, string>; stdio: "inherit" | "pipe" },
): Promise<Ended> {
  // Never resolves, so that nothing is reported about programs that did not run.
  if (isEnding) return await new Promise(() => undefined);
  const child = spawn(program, args, {
    cwd: checkoutRoot(),
    stdio: ["ignore", stdio, stdio],
    env: { ...process.env, ...env },
    // The child has its own process group, so Ctrl-C reaches only this process, which then ends all
    // its children.
    detached: true,
  });
  running.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  return await new Promise((resolve) => {
    const end = (code: number): void => {
      running.delete(child);
      resolve({ code, output });
    };
    child.once("error", () => end(127));
    child.once("close", (code) => end(code ?? 1));
  });
}
