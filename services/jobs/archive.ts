import { isOlder } from "../../platform/postgres/clock";
import { all, execute, type Queryable } from "../../platform/postgres/pool";

/** The position of an ended job in the list of jobs that is ordered by end time. */
export interface EndedJob {
  job_id: string;
  /** As text, because a Date would drop the microseconds. */
  ended_at: string;
}

/**
 * Time from the migration that adds the archive tables until archiving begins. By then, no server
 * of the previous release should run any more: such a server can't find archived jobs.
 */
const AFTER_MIGRATION = "interval '7 days'";

/**
 * A page of jobs that ended more than `afterS` seconds ago, oldest first.
 *
 * @param after only jobs after this one; undefined for the first page.
 */
export async function listEndedJobs(
  db: Queryable,
  afterS: number,
  after: EndedJob | undefined,
  limit: number,
) {
  return await all<EndedJob>(
    db,
    `select job_id, completed_at::text as ended_at from jobs
     -- The condition on user_id is always true. It is needed because the index
     -- for this statement has the same condition (where length(user_id) > 0).
     where completed_at is not null and length(user_id) > 0
       and ${isOlder("completed_at", "make_interval(secs => $1)")}
       and ($2::text is null or (completed_at, job_id) > ($2::timestamptz, $3::text))
       and exists (select from migrations
                   where name = '0058_archived_jobs.sql' and applied_at < now() - ${AFTER_MIGRATION})
     order by completed_at, job_id limit $4`,
    [afterS, after?.ended_at ?? null, after?.job_id ?? null, limit],
  );
}

/**
 * SQL: whether job `j` is settled: nothing will change it, and nothing needs its row in `jobs`.
 * - A job that ran must not be archived before it has its billing line: the trigger that adds a new
 *   line to the totals looks up the job in `jobs` only.
 * - A deployment, or a pipeline that has not ended, needs the rows of its jobs in `jobs`.
 */
const IS_SETTLED = `j.swept_at is not null
  and j.placement is null
  and not exists (select from deployments d where d.job_id = j.job_id)
  and not exists (select from pipelines p where p.pipeline_id = j.pipeline_id and p.completed_at is null)
  and not exists (select from outbox o where o.job_id = j.job_id)
  and not exists (select from billing_records b where b.job_id = j.job_id and b.state <> 'final')
  and (exists (select from billing_lines l where l.job_id = j.job_id)
       or not exists (select from attempts a where a.job_id = j.job_id and a.started_at is not null))`;

/**
 * Moves these ended jobs, and their attempts, to `archived_jobs` and `archived_attempts`. Leaves
 * out jobs that are not settled, or that another transaction has locked. Deletes the rows of the
 * moved jobs in `attempt_files`: these rows were needed only until the job's end.
 */
export async function archiveJobs(db: Queryable, jobIds: string[]): Promise<void> {
  await execute(
    db,
    `with settled as materialized (
       select j.job_id from jobs j where job_id = any($1) and ${IS_SETTLED}
       order by j.job_id for update of j skip locked),
     files as (delete from attempt_files f using settled where f.job_id = settled.job_id),
     ended_attempts as (delete from attempts a using settled where a.job_id = settled.job_id returning a.*),
     kept_attempts as (insert into archived_attempts select * from ended_attempts),
     ended as (delete from jobs j using settled where j.job_id = settled.job_id returning j.*)
     insert into archived_jobs select * from ended`,
    [jobIds],
  );
}
