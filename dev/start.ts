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
 * The person who starts the stack sets up machines with keys of their own: the local user's directory of SSH
 * keys is theirs, unless there is one.
 */
function lendSshKeys(home: string): void {
  const own = join(homedir(), ".ssh");
  const lent = join(home, "ssh", "local");
  if (process.env.FORGE_SSH_KEY_DIR || !existsSync(own)) return;
  if (lstatSync(lent, { throwIfNoEntry: false })) return;
  mkdirSync(dirname(lent), { recursive: true, mode: 0o700 });
  symlinkSync(own, lent);
}

/** `npm start`: a whole Forge on this machine, until Ctrl-C. */
async function main(): Promise<void> {
  const agents = wholeNumber("FORGE_AGENTS", 1);
  const port = wholeNumber("FORGE_PORT", 8080);
  // Without PyTorch the agents take generate, audit and distill only.
  const needs: PythonNeed[] =
    process.env.FORGE_TORCH === "false" ? ["runtime"] : ["runtime", "train"];
  if (agents > 0) await pythonEnvironment(say, needs);
  const home = process.env.FORGE_HOME ?? ".forge";
  const stack = new Stack({ home, port, agents });
  lendSshKeys(home);
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
  say("Ready. Ctrl-C stops it; its state stays for the next start.");

  /** Starts a part again when it ends by itself, for as long as the stack runs. */
  const keep = async (
    current: () => ManagedProcess | undefined,
    startAgain: () => Promise<unknown>,
  ): Promise<void> => {
    for (let part = current(); part; part = current()) {
      await part.exited;
      if (stopping) return;
      say(`${part.name} ended; starting it again`);
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
