import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import type { ComparedRows, Standing } from "../temporal/standing";
import type { JobRow } from "./jobs";

/** A job as it is compared with its workflow, which may have to be started again. */
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
 * SQL: a job owes Temporal nothing, and has not moved for a while, or seems to have moved after now, because the clock
 * was set back since: that one is compared early, which does no harm.
 */
const STANDS = `moved_at not between now() - make_interval(secs => $1) and now()
  and not exists (select from outbox o where o.job_id = jobs.job_id)`;

/** As they are compared with open workflows. */
export const JOBS: ComparedRows = {
  table: "jobs",
  id: "job_id",
  isOver: "status in ('completed', 'failed')",
  stands: STANDS,
};

/**
 * A page of unfinished ones that stand, by id, after `afterId`. Due are those whose latest attempt has ended: their
 * workflows should be about to write the job's own end.
 */
export async function listStandingJobs(
  db: Queryable,
  forS: number,
  afterId: string,
  limit: number,
): Promise<Standing[]> {
  return await all<Standing & Record<string, unknown>>(
    db,
    `select job_id as id, (select state = 'ended' from attempts a where a.job_id = jobs.job_id
                           order by attempt desc limit 1) as is_due
     from jobs
     where status not in ('completed', 'failed') and job_id > $2 and ${STANDS}
     order by job_id limit $3`,
    [forS, afterId, limit],
  );
}
