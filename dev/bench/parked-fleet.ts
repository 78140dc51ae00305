import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SimulatedFleet } from "../simulator/fleet";
import { checkoutRoot } from "../stack/paths";
import type { Stack } from "../stack/stack";

/** What a process takes, over some seconds. */
export interface Load {
  cpuShare: number;
  rssMb: number;
}

const HEARTBEAT_MS = 5_000;
const WAIT_S = 50;
const TICKS_PER_S = 100;

/** CPU time of a process so far, in seconds. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S;
}

function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** What a server takes with so many workers parked and heartbeating every five seconds. */
async function measure(
  apiUrl: string,
  key: string,
  pid: number,
  workers: number,
  seconds: number,
): Promise<Load> {
  const fleet = new SimulatedFleet(
    { normal: workers },
    { apiUrl, workerKey: key, heartbeatMs: HEARTBEAT_MS, waitS: WAIT_S, workMs: 0, silenceMs: 0 },
  );
  await fleet.start();
  // What its start cost is over.
  await sleep(2_000);
  const before = cpuSeconds(pid);
  await sleep(seconds * 1000);
  const load = { cpuShare: (cpuSeconds(pid) - before) / seconds, rssMb: rssMb(pid) };
  await fleet.stop();
  return load;
}

const meanOf = (loads: Load[]): Load => ({
  cpuShare: loads.reduce((sum, load) => sum + load.cpuShare, 0) / loads.length,
  rssMb: loads.reduce((sum, load) => sum + load.rssMb, 0) / loads.length,
});

/**
 * Forge against a bare server, in turns, with the same workers. Forge is a process that serves the API and
 * nothing else, as there is one where there are a thousand workers; its Temporal worker is another.
 *
 * @param apiUrl where the last of the stack's other servers listens.
 */
export async function measureParkedFleet(
  stack: Stack,
  apiUrl: string,
  workers: number,
  seconds: number,
  rounds: number,
): Promise<{ forge: Load; bare: Load }> {
  const server = spawn(process.execPath, [join(checkoutRoot(), "dist/dev/bench/bare-server.js")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const port = await firstLine(server);
    const bareUrl = `http://127.0.0.1:${port}`;
    const pid = stack.otherServers.at(-1)?.pid ?? 0;
    const loads: { forge: Load; bare: Load }[] = [];
    for (let round = 0; round < rounds; round++) {
      const bare = await measure(bareUrl, "k", server.pid ?? 0, workers, seconds);
      const forge = await measure(apiUrl, stack.keys.workerKey, pid, workers, seconds);
      loads.push({ forge, bare });
    }
    return {
      forge: meanOf(loads.map((load) => load.forge)),
      bare: meanOf(loads.map((load) => load.bare)),
    };
  } finally {
    server.kill();
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error("no stdout");
  const [chunk] = (await once(child.stdout, "data")) as [Buffer];
  return chunk.toString().trim();
}
