import type { ErrorCode } from "../../core/jobs/states";
import { execute, type Queryable } from "../../platform/postgres/pool";

/**
 * Sets an unfinished job to `failed`, with the worker and the log of this attempt. Without `error`,
 * the job gets the attempt's error. Does not write the bill. Does nothing and returns false in
 * these cases:
 * - The job has already ended.
 * - The attempt is still live: a job does not end before its attempt.
 * - A later attempt exists: the job continues with that attempt.
 */
export async function failJob(
  db: Queryable,
  jobId: string,
  attempt: number,
  code: ErrorCode,
  error: string | null = null,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update jobs j set status = 'failed', completed_at = now(), error_code = $3,
            error = coalesce($4, a.error),
            worker_id = a.worker_id, logs_uri = coalesce(a.logs_uri, j.logs_uri)
     from attempts a
     where j.job_id = $1 and a.job_id = j.job_id and a.attempt = $2 and a.state = 'ended'
       and j.status = any('{pending,provisioning_worker,assigned,running}')
       and not exists (select from attempts later where later.job_id = j.job_id and later.attempt > a.attempt)`,
    [jobId, attempt, code, error],
  );
  return changed === 1;
}
