import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SimulatedFleet } from "../simulator/fleet";
import { cpuSeconds } from "../stack/cpu-time";
import { checkoutRoot } from "../stack/paths";
import type { Stack } from "../stack/stack";
import { quantile } from "./hand-out-latency";

/** What a process takes. */
export interface Load {
  /** Of a core, over some seconds, before anybody has come. */
  idleShare: number;
  /** The same with the fleet. */
  cpuShare: number;
  rssMb: number;
}

export interface Loads {
  forge: Load;
  bare: Load;
}

export interface FleetScale {
  workers: number;
  /** Windows before anybody has come, and windows with the fleet. */
  idleWindows: number;
  windows: number;
  heartbeatS: number;
  /** A multiple of heartbeatS, so that every window has the same number of heartbeats. */
  windowS: number;
}

const WAIT_S = 50;
const SETTLE_MS = 1_000;
/** So long is the longest pause of a loop that runs all the time. */
const IDLE_WINDOW_MS = 2_000;

function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** What share of a core each of these processes takes for so long. */
async function cpuShares(pids: number[], forMs: number): Promise<number[]> {
  const before = pids.map(cpuSeconds);
  const began = performance.now();
  await sleep(forMs);
  const tookS = (performance.now() - began) / 1000;
  return pids.map((pid, at) => (cpuSeconds(pid) - (before[at] ?? 0)) / tookS);
}

/** What they take while nobody asks. The median: a fresh process once collects the garbage of its start. */
async function idleShares(pids: number[], count: number): Promise<number[]> {
  const windows: number[][] = [];
  while (windows.length < count) windows.push(await cpuShares(pids, IDLE_WINDOW_MS));
  return pids.map((_, at) =>
    quantile(
      windows.map((shares) => shares[at] ?? 0),
      0.5,
    ),
  );
}

/**
 * Forge against a bare server, each with as many workers parked and heartbeating as often. Both
 * are measured at one time: what else the machine does meanwhile falls on both. Forge is a process that
 * serves the API and nothing else, as there is one where there are a thousand workers; its Temporal worker
 * is another.
 *
 * @param apiUrl where the last of the stack's other servers listens.
 * @returns what they took in each of the windows.
 */
export async function measureParkedFleet(
  stack: Stack,
  apiUrl: string,
  { workers, idleWindows, windows, windowS, heartbeatS }: FleetScale,
): Promise<Loads[]> {
  const server = spawn(process.execPath, [join(checkoutRoot(), "dist/dev/bench/bare-server.js")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const fleets: SimulatedFleet[] = [];
  const heartbeatMs = heartbeatS * 1000;
  const park = async (url: string, workerKey: string): Promise<void> => {
    const fleet = new SimulatedFleet(
      { normal: workers },
      { apiUrl: url, workerKey, heartbeatMs, waitS: WAIT_S, workMs: 0, silenceMs: 0 },
    );
    fleets.push(fleet);
    await fleet.start();
  };
  try {
    const bareUrl = `http://127.0.0.1:${await firstLine(server)}`;
    const forgePid = stack.otherServers.at(-1)?.pid ?? 0;
    const barePid = server.pid ?? 0;
    const pids = [forgePid, barePid];
    await sleep(SETTLE_MS);
    const idle = await idleShares(pids, idleWindows);
    await park(bareUrl, "k");
    await park(apiUrl, stack.keys.workerKey);
    // What their start cost is over, and each has heartbeat once.
    await sleep(heartbeatMs + SETTLE_MS);
    const loads: Loads[] = [];
    while (loads.length < windows) {
      const taken = await cpuShares(pids, windowS * 1000);
      const load = (pid: number, at: number): Load => ({
        idleShare: idle[at] ?? 0,
        cpuShare: taken[at] ?? 0,
        rssMb: rssMb(pid),
      });
      loads.push({ forge: load(forgePid, 0), bare: load(barePid, 1) });
    }
    return loads;
  } finally {
    await Promise.all(fleets.map((fleet) => fleet.stop()));
    server.kill();
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error("no stdout");
  const [chunk] = (await once(child.stdout, "data")) as [Buffer];
  return chunk.toString().trim();
}
