import type { JobRow } from "./jobs";
import { all, maybeOne, type Queryable } from "./pool";

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
 * SQL: whether a job has not moved for a while, or seems to have moved after now, because the clock was set back since:
 * that one is compared early, which does no harm.
 */
const stands = (forS: string): string =>
  `j.moved_at not between now() - make_interval(secs => ${forS}) and now()`;

/** An unfinished job that owes Temporal nothing, and has not moved for a while. */
export interface StandingJob {
  id: string;
  /** Its latest attempt has ended: its workflow should be about to write the job's own end. */
  is_due: boolean;
}

/** A page of them, by id, after `afterId`. */
export async function listStandingJobs(
  db: Queryable,
  forS: number,
  afterId: string,
  limit: number,
): Promise<StandingJob[]> {
  return await all<StandingJob>(
    db,
    `select job_id as id, (select state = 'ended' from attempts a where a.job_id = j.job_id
                           order by attempt desc limit 1) as is_due
     from jobs j
     where status not in ('completed', 'failed') and job_id > $2
       and ${stands("$1")}
       and not exists (select from outbox o where o.job_id = j.job_id)
     order by job_id limit $3`,
    [forS, afterId, limit],
  );
}

/** Of jobs whose workflows are open, those that ended a while ago, and those that are not in the database. */
export async function listNotStanding(
  db: Queryable,
  jobIds: string[],
  forS: number,
): Promise<string[]> {
  const rows = await all<{ job_id: string }>(
    db,
    `select given.job_id from unnest($1::text[]) given (job_id) left join jobs j using (job_id)
     where j.job_id is null
        or j.status in ('completed', 'failed') and ${stands("$2")}
           and not exists (select from outbox o where o.job_id = given.job_id)`,
    [jobIds, forS],
  );
  return rows.map((row) => row.job_id);
}
