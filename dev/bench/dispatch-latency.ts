import type pg from "pg";
import { all } from "../../platform/postgres/pool";
import { ApiClient } from "../api-client";
import type { Stack } from "../stack/stack";
import { waitFor } from "../stack/wait";

const WORKER = "bench-waiting";

/**
 * Measures the time from sending a submission until a waiting worker receives the job in the answer
 * of next_job. Returns the time of each job in ms.
 */
export async function measureDispatchLatency(
  stack: Stack,
  pool: pg.Pool,
  jobs: number,
): Promise<number[]> {
  const user = new ApiClient(stack.apiUrl, stack.keys.userKey);
  const worker = new ApiClient(stack.apiUrl, stack.keys.workerKey);
  await worker.post("/api/workers/register", {
    worker_id: WORKER,
    gpu: { name: "cpu", memory_gb: 0 },
  });
  const heartbeat = setInterval(() => {
    worker.post("/api/workers/heartbeat", { worker_id: WORKER }).catch(() => undefined);
  }, 5_000);
  const latencies: number[] = [];
  try {
    for (let n = 0; n < jobs; n++) {
      const polled = worker
        .post<{ job_id: string }>("/api/workers/next_job", { worker_id: WORKER, wait_seconds: 30 })
        .then((job) => ({ job, at: performance.now() }));
      await waitFor("the worker to wait, and the last job to have ended", async () => {
        const rows = await all(
          pool,
          `select from workers where worker_id = $1 and status = 'idle' and available_until > now()
             and not exists (select from jobs where status not in ('completed', 'failed'))`,
          [WORKER],
        );
        return rows.length === 1;
      });
      const sent = performance.now();
      await user.submit("audit", { dataset_uri: "s3://bucket/data.parquet" });
      const { job, at } = await polled;
      latencies.push(at - sent);
      await worker.post("/api/workers/job_result", {
        worker_id: WORKER,
        job_id: job.job_id,
        status: "completed",
        result: {},
        metrics: { rows_processed: 1 },
        // `leaving` says that this worker takes no more jobs. Otherwise the server could assign a
        // job of the next measurement to this worker, which no longer polls.
        leaving: n === jobs - 1,
      });
    }
  } finally {
    clearInterval(heartbeat);
  }
  return latencies;
}

/**
 * Returns a quantile of the values: the median for `share` 0.5, the 95th percentile for 0.95. If
 * there are no values, returns NaN.
 */
export function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
