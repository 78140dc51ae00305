import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ManagedProcess } from "./process";

/** Polls until `probe` gives something other than undefined, false or an error. */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: { timeoutMs?: number; everyMs?: number; process?: ManagedProcess } = {},
): Promise<T> {
  const { timeoutMs = 30_000, everyMs = 50, process } = options;
  const deadline = performance.now() + timeoutMs;
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
    await sleep(everyMs);
  }
}

/** Ports that nobody listens on, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
          const server = createServer();
          server.once("error", reject);
          server.listen(0, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return address.port;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
