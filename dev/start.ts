import { existsSync, lstatSync, mkdirSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ManagedProcess } from "./stack/process";
import { type PythonNeed, pythonEnvironment } from "./stack/python";
import { sayOnStderr as say } from "./stack/say";
import { Stack } from "./stack/stack";

const RESTART_MS = 1_000;

function wholeNumber(name: string, byDefault: number): number {
  const text = process.env[name] || String(byDefault);
  if (!/^\d{1,5}$/.test(text)) throw new Error(`${name} must be a whole number, not "${text}"`);
  return Number(text);
}

/**
 * Makes ~/.ssh the SSH key directory of the stack's local user: creates the key directory as a
 * symbolic link to ~/.ssh. Does nothing if the key directory already exists, if there is no ~/.ssh,
 * or if FORGE_SSH_KEY_DIR is set.
 */
function linkSshKeys(home: string): void {
  const own = join(homedir(), ".ssh");
  const link = join(home, "ssh", "local");
  if (process.env.FORGE_SSH_KEY_DIR || !existsSync(own)) return;
  if (lstatSync(link, { throwIfNoEntry: false })) return;
  mkdirSync(dirname(link), { recursive: true, mode: 0o700 });
  symlinkSync(own, link);
}

/** `npm start`: runs a complete Forge on this machine until Ctrl-C. */
async function main(): Promise<void> {
  const agents = wholeNumber("FORGE_AGENTS", 1);
  const port = wholeNumber("FORGE_PORT", 8080);
  // Without PyTorch the agents run only generate, audit and distill jobs.
  const needs: PythonNeed[] =
    process.env.FORGE_TORCH === "false" ? ["runtime"] : ["runtime", "train"];
  if (agents > 0) await pythonEnvironment(say, needs);
  const home = process.env.FORGE_HOME ?? ".forge";
  const stack = new Stack({ home, port, agents });
  linkSshKeys(home);
  let stopping: Promise<void> | undefined;
  const stop = (): void => {
    if (stopping) return;
    say("Stopping …");
    stopping = stack.stop().then(() => process.exit(0));
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  try {
    await stack.start();
  } catch (error) {
    if (stopping) return;
    await stack.stop();
    throw error;
  }
  say("");
  say(`  Dashboard    ${stack.apiUrl}/ui/`);
  say(`  API          ${stack.apiUrl}`);
  say(`  Temporal UI  ${stack.temporalUiUrl}`);
  say(`  Keys         ${process.env.FORGE_HOME ?? ".forge"}/stack.json`);
  say("");
  say("Ready. Press Ctrl-C to stop; the state is kept for the next start.");

  /** Restarts a process when it ends unexpectedly, while the stack runs. */
  const keep = async (
    current: () => ManagedProcess | undefined,
    startAgain: () => Promise<unknown>,
  ): Promise<void> => {
    for (let child = current(); child; child = current()) {
      await child.exited;
      if (stopping) return;
      say(`${child.name} ended; restarting it`);
      await sleep(RESTART_MS);
      if (stopping) return;
      await startAgain().catch((error: unknown) => say(String(error)));
      stack.writeStackFile();
    }
  };
  void keep(
    () => stack.postgres,
    () => stack.startPostgres(),
  );
  void keep(
    () => stack.temporal,
    () => stack.startTemporal(),
  );
  void keep(
    () => stack.server,
    () => stack.startServer(),
  );
  for (const name of stack.agents.keys()) {
    void keep(
      () => stack.agents.get(name),
      () => stack.startAgent(name),
    );
  }
}

main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
