/**
 * Usage: `node delay-watcher.js API_URL USER_KEY BARE_URL`.
 *
 * Sends pairs of calls. The two calls of a pair start at the same time: one goes to Forge, and the
 * other one to a bare server. The delay of a pair is the difference between the response times.
 * Prints an empty line after the first pair. When stdin ends, prints the pair with the longest
 * delay as JSON. Runs in a separate process, so that work of the test, such as sending files, does
 * not count as a delay.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../../dev/api-client";

export interface Delay {
  /** When the call to Forge and the call to the bare server were sent. ISO 8601. */
  at: string;
  forgeMs: number;
  bareMs: number;
}

const [apiUrl = "", userKey = "", bareUrl = ""] = process.argv.slice(2);
const user = new ApiClient(apiUrl, userKey);

async function timeOf(call: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await call();
  return performance.now() - began;
}

async function measure(): Promise<Delay> {
  const at = new Date().toISOString();
  const [forgeMs, bareMs] = await Promise.all([
    timeOf(() => user.get("/api/jobs?limit=1")),
    timeOf(async () => await (await fetch(bareUrl)).text()),
  ]);
  return { at, forgeMs, bareMs };
}

async function watch(): Promise<void> {
  let isOver = false;
  process.stdin.resume().on("end", () => {
    isOver = true;
  });
  let longest = await measure();
  process.stdout.write("\n");
  while (!isOver) {
    await sleep(20);
    const delay = await measure();
    if (delay.forgeMs - delay.bareMs > longest.forgeMs - longest.bareMs) longest = delay;
  }
  process.stdout.write(JSON.stringify(longest));
}

void watch();
