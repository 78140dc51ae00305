import type { ApiClient, Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all, type Queryable } from "../../infra/database/pool";

/** Whether a worker may be given a job: it is parked, or asked lately. */
export async function isOffered(pool: Queryable, workerId: string): Promise<boolean> {
  const rows = await all(
    pool,
    "select from workers where worker_id = $1 and available_until > now()",
    [workerId],
  );
  return rows.length === 1;
}

/** A valid audit of a dataset that nobody will read. */
export const AUDIT = { dataset_uri: "s3://bucket/data.parquet" };

/** Waits until the job has one of the statuses. */
export async function untilStatus(
  api: ApiClient,
  jobId: string,
  statuses: string[],
  timeoutMs = 30_000,
): Promise<Job> {
  return await waitFor(
    `${jobId} to be ${statuses.join(" or ")}`,
    async () => {
      const job = await api.job(jobId);
      return statuses.includes(job.status) && job;
    },
    { timeoutMs },
  );
}

export async function untilEnded(api: ApiClient, jobId: string, timeoutMs = 30_000): Promise<Job> {
  return await untilStatus(api, jobId, ["completed", "failed"], timeoutMs);
}
