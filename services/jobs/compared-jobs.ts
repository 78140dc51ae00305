import type { JobStatus } from "../../core/jobs/states";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import type { ComparedRows } from "../temporal/compared-rows";
import { ALL_ATTEMPTS, ALL_JOBS } from "./all-jobs";
import type { StartableJob } from "./outbox-entries";

/**
 * The fields of a job that the reconciler needs to compare it with its workflow and to start the
 * workflow again.
 */
interface ComparedJob extends StartableJob {
  status: JobStatus;
  latest_attempt: number;
  /**
   * The job failed, a worker ran it, and the database has neither a billing record nor a billing
   * line for it.
   */
  is_unbilled: boolean;
}

/**
 * SQL: whether job `j` is unbilled, as defined at `is_unbilled`. Leaves out failed jobs with a
 * completed attempt: an operator ended these jobs, and `recordUnbilledHours` records their hours.
 */
const IS_UNBILLED = `j.status = 'failed'
  and exists (select from attempts a where a.job_id = j.job_id and a.started_at is not null)
  and not exists (select from attempts a where a.job_id = j.job_id and a.outcome = 'completed')
  and not exists (select from billing_lines l where l.job_id = j.job_id)
  and not exists (select from billing_records b where b.job_id = j.job_id)`;

/** Whether the job is unbilled, as defined at `ComparedJob.is_unbilled`. */
export async function isUnbilled(db: Queryable, jobId: string): Promise<boolean> {
  const found = await maybeOne(db, `select from jobs j where job_id = $1 and ${IS_UNBILLED}`, [
    jobId,
  ]);
  return found !== undefined;
}

export async function findComparedJob(db: Queryable, jobId: string) {
  return await maybeOne<ComparedJob>(
    db,
    `select job_id, user_id, job_type, max_attempts, request_id, status,
            (select max(attempt) from ${ALL_ATTEMPTS} a where a.job_id = j.job_id) as latest_attempt,
            ${IS_UNBILLED} as is_unbilled
     from ${ALL_JOBS} j where job_id = $1`,
    [jobId],
  );
}

export const JOBS: ComparedRows = {
  table: "jobs",
  allRows: ALL_JOBS,
  id: "job_id",
  isLive: "status not in ('completed', 'failed')",
  // After the database's clock was set back, `moved_at` may be in the future. Such a job counts as
  // unchanged, so the reconciler compares it with its workflow, which does no harm.
  isUnchanged: `moved_at not between now() - make_interval(secs => $1) and now()
    and not exists (select from outbox o where o.job_id = jobs.job_id)`,
  // The latest attempt has ended, so the workflow should be about to end the job or to queue
  // another attempt.
  isDue: `(select state = 'ended' from attempts a where a.job_id = jobs.job_id
           order by attempt desc limit 1)`,
};
