import { setTimeout as sleep } from "node:timers/promises";
import { cpuShares, residentKib } from "../../stack/cpu-time";
import { Fleet } from "./fleet";
import { encode, HttpConnection } from "./http-connection";

export interface HoldOptions {
  url: string;
  workerKey: string;
  workers: number;
  /** Process id of the measured server. */
  pid: number;
  /** Duration of each measured period. */
  seconds: number;
}

/** How long to wait until the load of opening connections is over. */
const SETTLE_MS = 6_000;
/**
 * How long to wait after opening or closing thousands of polls. V8 collects their garbage up to
 * 20 s later, which takes half a second of CPU time.
 */
const COLLECTED_MS = 25_000;
/**
 * How long a poll waits for a job, in seconds. Must be longer than the measurement, so that no poll
 * is answered during it.
 */
export const POLL_S = 120;

/**
 * Lets a fleet poll and send heartbeats, without jobs. Returns the share of a core that the server
 * uses.
 */
export async function holdFleet(options: HoldOptions): Promise<number> {
  const fleet = await Fleet.start({ ...options, isRegistered: true });
  try {
    await sleep(SETTLE_MS);
    return await cpuShare(options);
  } finally {
    await fleet.stop();
  }
}

export interface PollCost {
  /** Growth of the server's resident memory per waiting poll, in KiB. */
  kibPerPoll: number;
  /** Share of a core that the server uses with the polls, minus its share without them. */
  addedCpuShare: number;
}

/**
 * If the polls seem to save more CPU time than this, in seconds, the server was still busy before
 * they were opened.
 */
const MAX_SAVED_S = 0.075;

/**
 * Opens one waiting poll per worker, and measures what the polls cost. Sends no heartbeats.
 *
 * @throws Error if a poll did not wait until the end of the measurement, or if the server was not
 *   idle before it.
 */
export async function holdPolls(options: HoldOptions): Promise<PollCost> {
  const { workers, pid } = options;
  // Warm up first. Otherwise the memory of compiled code and caches would count as memory of the
  // polls.
  const first = await WaitingPolls.open(options, Math.ceil(workers / 10));
  await sleep(SETTLE_MS);
  first.close();
  await sleep(COLLECTED_MS);
  const idleShare = await cpuShare(options);
  const before = residentKib(pid);
  const polls = await WaitingPolls.open(options, workers);
  try {
    await sleep(COLLECTED_MS);
    const share = await cpuShare(options);
    const kibPerPoll = (residentKib(pid) - before) / workers;
    polls.assertWaiting();
    const addedCpuShare = share - idleShare;
    if (addedCpuShare < -MAX_SAVED_S / options.seconds) {
      const [before, after] = [idleShare, share].map((one) => `${(100 * one).toFixed(1)} %`);
      throw new Error(`the server was not idle: ${before} of a core without polls, ${after} with`);
    }
    return { kibPerPoll, addedCpuShare };
  } finally {
    polls.close();
  }
}

class WaitingPolls {
  private readonly connections: HttpConnection[] = [];
  private ended = 0;

  /** Opens a connection per worker and sends a poll over it. Does not wait for the answers. */
  static async open({ url, workerKey }: HoldOptions, workers: number): Promise<WaitingPolls> {
    const polls = new WaitingPolls();
    for (let n = 0; n < workers; n++) {
      const connection = await HttpConnection.open(url);
      polls.connections.push(connection);
      const body = { worker_id: `bench-${n}`, wait_seconds: POLL_S };
      const poll = encode({ method: "POST", path: "/worker/next_job", body }, workerKey);
      const countEnd = (): void => void polls.ended++;
      connection.send(poll).then(countEnd, countEnd);
    }
    return polls;
  }

  /** @throws Error if the server has answered polls, or their connections are lost. */
  assertWaiting(): void {
    const { ended, connections } = this;
    if (ended > 0) throw new Error(`${ended} of ${connections.length} polls no longer wait`);
  }

  close(): void {
    for (const connection of this.connections) connection.close();
  }
}

async function cpuShare({ pid, seconds }: HoldOptions): Promise<number> {
  const [share = Number.NaN] = await cpuShares([pid], seconds * 1000);
  return share;
}
