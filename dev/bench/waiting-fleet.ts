import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SimulatedFleet } from "../simulator/fleet";
import { cpuShares, residentKib } from "../stack/cpu-time";
import { forgeServerOptions } from "../stack/own-node-options";
import { checkoutRoot } from "../stack/paths";
import type { Stack } from "../stack/stack";
import { quantile } from "./dispatch-latency";

/** CPU and memory use of a process. */
export interface Load {
  /** CPU use before the fleet starts, as a fraction of one core. */
  idleShare: number;
  /** CPU use with the fleet, as a fraction of one core. */
  cpuShare: number;
  rssMb: number;
}

export interface Loads {
  forge: Load;
  bare: Load;
}

export interface FleetScale {
  workers: number;
  /** Number of measured windows before the fleet starts. */
  idleWindows: number;
  /** Number of measured windows while the fleet runs. */
  windows: number;
  heartbeatS: number;
  /** A multiple of heartbeatS, so that every window has the same number of heartbeats. */
  windowS: number;
}

const WAIT_S = 50;
const SETTLE_MS = 1_000;
/**
 * Duration of an idle window. It is long enough that every background loop with an interval of at
 * most 2 s runs in each window.
 */
const IDLE_WINDOW_MS = 2_000;

/**
 * Returns the share of a core that each process uses without requests. In one of the windows, a new
 * process also collects the garbage from its start. The median of all windows excludes this.
 */
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
 * Compares Forge with a bare server, with the same number of polling and heartbeating workers. Both
 * are measured at the same time, so that other load on the machine affects both. Forge is a process
 * that only serves the API, as in an installation with a thousand workers. Its Temporal worker is
 * another process.
 *
 * @param apiUrl the address of the server that `stack.startAnotherServer` has started last.
 * @returns the load of Forge and of the bare server, in each window.
 */
export async function measureWaitingFleet(
  stack: Stack,
  apiUrl: string,
  { workers, idleWindows, windows, windowS, heartbeatS }: FleetScale,
): Promise<Loads[]> {
  const program = join(checkoutRoot(), "dist/dev/bench/bare-server.js");
  const server = fork(program, { execArgv: forgeServerOptions() });
  const fleets: SimulatedFleet[] = [];
  const heartbeatMs = heartbeatS * 1000;
  const startFleet = async (url: string, workerKey: string): Promise<void> => {
    const fleet = new SimulatedFleet(
      { normal: workers },
      { apiUrl: url, workerKey, heartbeatMs, waitS: WAIT_S, workMs: 0, silenceMs: 0 },
    );
    fleets.push(fleet);
    await fleet.start();
  };
  try {
    const [bareUrl] = (await once(server, "message")) as [string];
    const forgePid = stack.otherServers.at(-1)?.pid ?? 0;
    const barePid = server.pid ?? 0;
    const pids = [forgePid, barePid];
    await sleep(SETTLE_MS);
    const idle = await idleShares(pids, idleWindows);
    await startFleet(bareUrl, "k");
    await startFleet(apiUrl, stack.keys.workerKey);
    // Wait until the load of the start is over, and each worker has sent a heartbeat.
    await sleep(heartbeatMs + SETTLE_MS);
    const loads: Loads[] = [];
    while (loads.length < windows) {
      const shares = await cpuShares(pids, windowS * 1000);
      const load = (pid: number, at: number): Load => ({
        idleShare: idle[at] ?? 0,
        cpuShare: shares[at] ?? 0,
        rssMb: residentKib(pid) / 1024,
      });
      loads.push({ forge: load(forgePid, 0), bare: load(barePid, 1) });
    }
    return loads;
  } finally {
    await Promise.all(fleets.map((fleet) => fleet.stop()));
    server.kill();
  }
}
