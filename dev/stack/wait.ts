import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ManagedProcess } from "./process";

/**
 * The pause between two probes is a fifth of the time waited so far, within these bounds. Frequent
 * probes during a long wait would take CPU time from the waiting program and the probed one.
 */
const SHORTEST_PAUSE_MS = 30;
const LONGEST_PAUSE_MS = 250;
const PAUSE_SHARE = 0.2;

/**
 * Calls `probe` until it returns a value other than undefined and false. An error of `probe` counts
 * as no value.
 *
 * @param options.everyMs a fixed pause between two probes, instead of a growing one.
 */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: { timeoutMs?: number; everyMs?: number; process?: ManagedProcess } = {},
): Promise<T> {
  const { timeoutMs = 30_000, everyMs, process } = options;
  const began = performance.now();
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (process && !process.alive) {
      throw new Error(`${process.name} ended while waiting for ${what}:\n${process.logTail()}`);
    }
    const waitedMs = performance.now() - began;
    if (waitedMs > timeoutMs) {
      const why =
        last === undefined ? "" : ` (${last instanceof Error ? last.message : String(last)})`;
      throw new Error(`timed out after ${timeoutMs / 1000} s waiting for ${what}${why}`);
    }
    const pauseMs = Math.max(SHORTEST_PAUSE_MS, PAUSE_SHARE * waitedMs);
    await sleep(everyMs ?? Math.min(LONGEST_PAUSE_MS, pauseMs));
  }
}

/**
 * The lowest port that `freePorts` returns. All ports that it returns are above those on which
 * agents serve models, and below the ephemeral ports. An outgoing connection could take an
 * ephemeral port before the caller's program listens on it.
 */
const FIRST_PORT = 19_000;
/**
 * The ports are divided into this many lanes: every LANES-th port belongs to the same lane. Each
 * process takes its ports from one lane, so that concurrent processes seldom choose the same port.
 * The first JEST_LANES lanes are for jest's worker processes, by worker number. The other lanes are
 * for other processes, by process id.
 */
const LANES = 16;
const JEST_LANES = 8;
const PORTS_OF_LANE = 800;

function laneOf({ pid, env: { JEST_WORKER_ID: id } }: NodeJS.Process): number {
  if (id === undefined) return JEST_LANES + (pid % (LANES - JEST_LANES));
  return Number(id) % JEST_LANES;
}

/** Returns distinct free ports. */
export async function freePorts(count: number): Promise<number[]> {
  const held: { port: number; server: Server }[] = [];
  while (held.length < count) {
    const port = FIRST_PORT + randomInt(PORTS_OF_LANE) * LANES + laneOf(process);
    const server = await listenOn(port);
    if (server) held.push({ port, server });
  }
  await Promise.all(held.map(({ server }) => new Promise((resolve) => void server.close(resolve))));
  return held.map(({ port }) => port);
}

/** Listens on a port; undefined if it is in use. */
function listenOn(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
