import { spawn } from "node:child_process";
import { checkoutRoot } from "../stack/paths";

export interface Ended {
  code: number;
  /** Both streams; empty if they went to our terminal. */
  output: string;
}

/** Runs a program in the checkout, with our terminal. */
export const runHere = (
  program: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<Ended> => run(program, args, { env, stdio: "inherit" });

/** Runs a program in the checkout and returns its output instead of printing it. */
export const runQuietly = (program: string, args: string[]): Promise<Ended> =>
  run(program, args, { env: {}, stdio: "pipe" });

async function run(
  program: string,
  args: string[],
  { env, stdio }: { env: Record<string, string>; stdio: "inherit" | "pipe" },
): Promise<Ended> {
  const child = spawn(program, args, {
    cwd: checkoutRoot(),
    stdio: ["ignore", stdio, stdio],
    env: { ...process.env, ...env },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return await new Promise((resolve) => {
    child.once("error", () => resolve({ code: 127, output }));
    child.once("close", (code) => resolve({ code: code ?? 1, output }));
  });
}
