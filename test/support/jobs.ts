import { jobWorkflowId } from "../../core/workflow-ids";
import type { ApiClient, Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, type Queryable } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

/** Whether an idle worker can be assigned a job: its poll waits, or it has polled recently. */
export async function isOffered(pool: Queryable, workerId: string): Promise<boolean> {
  const rows = await all(
    pool,
    "select from workers where worker_id = $1 and available_until > now()",
    [workerId],
  );
  return rows.length === 1;
}

/** A valid audit of a dataset that is never read. */
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

/** Waits until the final writes of a job have failed once and are being retried. */
export async function untilRetried({ ctx }: Pick<Forge, "ctx">, jobId: string): Promise<void> {
  await waitFor("the final writes to be retried", async () => {
    const handle = ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));
    const { raw } = await handle.describe();
    return raw.pendingActivities?.some(({ activityType }) => activityType?.name === "finishJob");
  });
}

/**
 * Pretends that the job has run for `hours`, because reported GPU time is billed only up to the
 * time that the job has run.
 */
export async function backdateStart(
  { ctx }: Pick<Forge, "ctx">,
  job: { job_id: string },
  hours: number,
): Promise<void> {
  await execute(
    ctx.pool,
    `update attempts set started_at = started_at - make_interval(secs => $2 * 3600)
     where job_id = $1 and state = 'running'`,
    [job.job_id, hours],
  );
}
