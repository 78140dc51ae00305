import { type ChildProcess, spawn } from "node:child_process";
import { checkoutRoot } from "../stack/paths";
import { killGroup } from "../stack/process";

export interface Ended {
  code: number;
  /** The text of stdout and stderr; empty if the program used the streams of this process. */
  output: string;
}

const running = new Set<ChildProcess>();
let isEnding = false;

/** Runs a program in the checkout. It prints to the stdout and stderr of this process. */
export const runInherited = (
  program: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<Ended> => run(program, args, { env, stdio: "inherit" });

/** Runs a program in the checkout and returns its output instead of printing it. */
export const runQuietly = (program: string, args: string[]): Promise<Ended> =>
  run(program, args, { env: {}, stdio: "pipe" });

/** Kills the process groups of all running programs. After this call, no program can start. */
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
  // After `endRunning`, never resolve. Otherwise the caller would report a result of a program that
  // did not run.
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
