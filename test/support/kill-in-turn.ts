import { setTimeout as sleep } from "node:timers/promises";
import type { Forge } from "./forge";

export interface Victim {
  name: string;
  kill(): Promise<void> | undefined;
  restart(): Promise<unknown>;
}

/** The processes to kill. The stack must run the Temporal worker as a separate process. */
export function processesOf(forge: Forge): Victim[] {
  const { stack } = forge;
  return [
    { name: "server", kill: () => stack.server?.kill(), restart: () => stack.startServer() },
    {
      name: "temporal-worker",
      kill: () => stack.temporalWorker?.kill(),
      restart: () => stack.startTemporalWorker(),
    },
    {
      name: "postgres",
      kill: () => forge.own("postgres").kill(),
      restart: () => stack.startPostgres(),
    },
    {
      name: "temporal",
      kill: () => forge.own("temporal").kill(),
      restart: () => stack.startTemporal(),
    },
  ];
}

export interface KillOptions {
  /** The longest random pause before a kill. */
  betweenMs?: number;
  /** The maximum number of kills. */
  atMost?: number;
  /**
   * Called before each kill. The kill waits until the returned promise resolves. A test uses this
   * to wait for progress, which a busy machine might not make between two kills.
   */
  between?: () => Promise<unknown>;
}

/**
 * Kills the processes in turn at random moments, and restarts each after a moment. Stops when each
 * was killed at least once and `isOver` returns true, or after `atMost` kills. @returns the names
 * of the killed processes, in order.
 */
export async function killInTurn(
  victims: Victim[],
  isOver: () => Promise<boolean>,
  { betweenMs = 1_500, atMost = Number.POSITIVE_INFINITY, between }: KillOptions = {},
): Promise<string[]> {
  const kills: string[] = [];
  const isDone = async (): Promise<boolean> =>
    kills.length >= victims.length && (await isOver().catch(() => false));
  while (kills.length < atMost && !(await isDone())) {
    await between?.();
    const victim = victims[kills.length % victims.length];
    // Sleep for a random time instead of waiting for a condition: the test is about kills at random
    // moments.
    await sleep(Math.random() * betweenMs);
    await victim?.kill();
    kills.push(victim?.name ?? "");
    await sleep(Math.random() * 800);
    await victim?.restart();
  }
  return kills;
}
