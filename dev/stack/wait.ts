import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ManagedProcess } from "./process";

/** The pause between two probes grows from the first to the last. */
const FIRST_PAUSE_MS = 30;
const LAST_PAUSE_MS = 100;
const GROWTH = 1.4;

/**
 * Polls until `probe` gives something other than undefined, false or an error.
 *
 * @param options.everyMs a fixed pause between two probes, in place of one that grows.
 */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: { timeoutMs?: number; everyMs?: number; process?: ManagedProcess } = {},
): Promise<T> {
  const { timeoutMs = 30_000, everyMs, process } = options;
  const deadline = performance.now() + timeoutMs;
  let pauseMs = everyMs ?? FIRST_PAUSE_MS;
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    if (process && !process.alive) {
      throw new Error(`${process.name} ended while we waited for ${what}:\n${process.lastWords()}`);
    }
    if (performance.now() > deadline) {
      const why =
        last === undefined ? "" : ` (${last instanceof Error ? last.message : String(last)})`;
      throw new Error(`waited ${timeoutMs / 1000} s in vain for ${what}${why}`);
    }
    await sleep(pauseMs);
    if (everyMs === undefined) pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * GROWTH);
  }
}

/**
 * Below the ports that systems give to outgoing connections: one of those could take a port in the seconds
 * until its program listens. And above those on which agents serve models.
 */
const FIRST_PORT = 19_000;
/** Each process has a lane of its own, so that two that look at the same moment seldom find the same. */
const LANES = 16;
const PORTS_OF_LANE = 800;

/** Ports that nobody listens on, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const held: { port: number; server: Server }[] = [];
  while (held.length < count) {
    const port = FIRST_PORT + randomInt(PORTS_OF_LANE) * LANES + (process.pid % LANES);
    const server = await listenOn(port);
    if (server) held.push({ port, server });
  }
  await Promise.all(held.map(({ server }) => new Promise((resolve) => void server.close(resolve))));
  return held.map(({ port }) => port);
}

/** Undefined: somebody else does. */
function listenOn(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
