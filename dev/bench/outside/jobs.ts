import { setTimeout as sleep } from "node:timers/promises";
import { Completions } from "./completions";
import { Fleet } from "./fleet";
import { bodyOf, encode, HttpConnection } from "./http-connection";
import { JobEvents } from "./job-events";

/** An audit job. Its dataset is never read, because the benchmark's workers do no work. */
export const SUBMISSION = {
  method: "POST",
  path: "/api/jobs/audit",
  body: { dataset_uri: "s3://bucket/data.parquet" },
} as const;

export interface JobsOptions {
  url: string;
  userKey: string;
  workerKey: string;
  workers: number;
  /** Whether the workers are in the database already (seeded-rows.ts). */
  isRegistered?: boolean;
  jobs: number;
}

/** How long to wait for jobs that have been submitted. */
const JOB_TIMEOUT_MS = 120_000;

/**
 * Measures jobs per second from end to end: each job is submitted, dispatched, completed and
 * billed, and its manifest is written. When a job ends, the next one is submitted, so `inFlight`
 * jobs are in progress at any time.
 */
export async function runJobs(options: JobsOptions & { inFlight: number }): Promise<number> {
  const { url, userKey, jobs, inFlight } = options;
  const ends = new Completions();
  const events = await JobEvents.open(url, userKey, ({ job_id, status }) => {
    if (status === "completed" || status === "failed") ends.done(job_id);
  });
  const request = encode(SUBMISSION, userKey);
  let submitted = 0;
  const submitInTurn = async (connection: HttpConnection): Promise<void> => {
    while (submitted < jobs) {
      submitted += 1;
      const { job_id } = bodyOf<{ job_id: string }>(await connection.send(request));
      await within(JOB_TIMEOUT_MS, ends.of(job_id));
    }
  };
  const fleet = await Fleet.start(options);
  const lanes = await openAll(url, inFlight);
  try {
    const began = performance.now();
    await Promise.all(lanes.map(submitInTurn));
    return jobs / ((performance.now() - began) / 1000);
  } finally {
    for (const lane of lanes) lane.close();
    events.close();
    await fleet.stop();
  }
}

/**
 * Measures the time from sending a submission until a waiting worker receives the job, in ms per
 * job. Submits `perSecond` jobs at regular intervals, regardless of how long each takes.
 *
 * @throws Error if a job is not received within JOB_TIMEOUT_MS.
 */
export async function paceJobs(options: JobsOptions & { perSecond: number }): Promise<number[]> {
  const { url, userKey, jobs, perSecond } = options;
  const dispatched = new Map<string, number>();
  const fleet = await Fleet.start({
    ...options,
    onJob: (jobId, at) => void dispatched.set(jobId, at),
  });
  const request = encode(SUBMISSION, userKey);
  const lanes = await openAll(url, Math.min(jobs, 2 * perSecond));
  try {
    // Wait until all workers poll.
    await sleep(500);
    const began = performance.now();
    const sent = await Promise.all(
      Array.from({ length: jobs }, async (_, n) => {
        await sleep(began + (n * 1000) / perSecond - performance.now());
        const lane = lanes.pop();
        if (!lane) throw new Error("submissions take longer than two seconds");
        const at = performance.now();
        const { job_id } = bodyOf<{ job_id: string }>(await lane.send(request));
        lanes.push(lane);
        return { jobId: job_id, at };
      }),
    );
    const until = performance.now() + JOB_TIMEOUT_MS;
    while (dispatched.size < jobs && performance.now() < until) await sleep(50);
    const lost = jobs - dispatched.size;
    if (lost > 0) throw new Error(`${lost} of ${jobs} jobs were not received by a worker`);
    return sent.map(({ jobId, at }) => (dispatched.get(jobId) ?? Number.NaN) - at);
  } finally {
    for (const lane of lanes) lane.close();
    await fleet.stop();
  }
}

const openAll = (url: string, count: number): Promise<HttpConnection[]> =>
  Promise.all(Array.from({ length: count }, () => HttpConnection.open(url)));

async function within(ms: number, work: Promise<void>): Promise<void> {
  const timeout = new AbortController();
  const late = sleep(ms, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`a job did not end within ${ms / 1000} s`);
  });
  // If `work` ends first, the abort below makes this promise reject. Ignore that.
  late.catch(() => undefined);
  await Promise.race([work, late]);
  timeout.abort();
}
