import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import type { ComparedRows, UnchangedRow } from "../temporal/compared-rows";
import type { JobRow } from "./jobs";

/** What the reconciler needs of a job to compare it with its workflow and to start the workflow again. */
export interface ComparedJob
  extends Pick<
    JobRow,
    "job_id" | "user_id" | "job_type" | "max_attempts" | "request_id" | "status"
  > {
  latest_attempt: number;
}

export async function findComparedJob(
  db: Queryable,
  jobId: string,
): Promise<ComparedJob | undefined> {
  return await maybeOne<ComparedJob>(
    db,
    `select job_id, user_id, job_type, max_attempts, request_id, status,
            (select max(attempt) from attempts a where a.job_id = j.job_id) as latest_attempt
     from jobs j where job_id = $1`,
    [jobId],
  );
}

/**
 * SQL: the job has no outbox entry and has not changed for $1 seconds. A `moved_at` in the future also counts: the
 * clock was set back since, and comparing the job early does no harm.
 */
const IS_UNCHANGED = `moved_at not between now() - make_interval(secs => $1) and now()
  and not exists (select from outbox o where o.job_id = jobs.job_id)`;

/** How the reconciler compares jobs with open workflows. */
export const JOBS: ComparedRows = {
  table: "jobs",
  id: "job_id",
  isOver: "status in ('completed', 'failed')",
  isUnchanged: IS_UNCHANGED,
};

/**
 * A page of unfinished jobs that have been unchanged for `forS` seconds, ordered by id, after `afterId`. A job is due
 * if its latest attempt has ended: its workflow should be about to end the job.
 */
export async function listUnchangedJobs(
  db: Queryable,
  forS: number,
  afterId: string,
  limit: number,
): Promise<UnchangedRow[]> {
  return await all<UnchangedRow & Record<string, unknown>>(
    db,
    `select job_id as id, (select state = 'ended' from attempts a where a.job_id = jobs.job_id
                           order by attempt desc limit 1) as is_due
     from jobs
     where status not in ('completed', 'failed') and job_id > $2 and ${IS_UNCHANGED}
     order by job_id limit $3`,
    [forS, afterId, limit],
  );
}
