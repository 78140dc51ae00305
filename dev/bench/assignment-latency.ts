import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { all } from "../../platform/postgres/pool";
import { ApiClient } from "../api-client";
import { SimulatedFleet } from "../simulator/fleet";
import type { Stack } from "../stack/stack";
import { waitFor } from "../stack/wait";

const JOBS_PER_S = 20;

/** Measures the time from submission to assignment, in ms per job, while `workers` workers poll. */
export async function measureAssignmentLatency(
  stack: Stack,
  pool: pg.Pool,
  apiUrl: string,
  workers: number,
  jobs: number,
): Promise<number[]> {
  const fleet = new SimulatedFleet(
    { normal: workers },
    {
      apiUrl,
      workerKey: stack.keys.workerKey,
      heartbeatMs: 5_000,
      waitS: 50,
      workMs: 1_000,
      silenceMs: 0,
    },
  );
  const user = new ApiClient(apiUrl, stack.keys.userKey);
  await fleet.start();
  try {
    await sleep(2_000);
    const submissions: Promise<{ job_id: string }>[] = [];
    const begun = performance.now();
    for (let n = 0; n < jobs; n++) {
      submissions.push(user.submit("audit", { dataset_uri: "s3://bucket/data.parquet" }));
      await sleep(Math.max(0, begun + ((n + 1) * 1000) / JOBS_PER_S - performance.now()));
    }
    const ids = (await Promise.all(submissions)).map((job) => job.job_id);
    return await waitFor("all jobs to have ended", () => latenciesOf(pool, ids), {
      timeoutMs: 60_000,
      everyMs: 500,
    });
  } finally {
    await fleet.stop();
  }
}

/** The latency of each job in ms. Undefined until all jobs have completed. */
async function latenciesOf(pool: pg.Pool, ids: string[]): Promise<number[] | undefined> {
  const rows = await all<{ ms: number }>(
    pool,
    `select extract(epoch from a.assigned_at - j.created_at)::float8 * 1000 as ms
     from jobs j join attempts a using (job_id)
     where j.job_id = any($1) and j.status = 'completed' and j.attempts = 1`,
    [ids],
  );
  return rows.length === ids.length ? rows.map((row) => row.ms) : undefined;
}
