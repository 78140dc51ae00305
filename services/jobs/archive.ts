import { isOlder } from "../../platform/postgres/clock";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";

/** An ended job, by its position in the order in which jobs are archived. */
export interface Ended {
  job_id: string;
  /** As text, because a Date would drop the microseconds. */
  ended_at: string;
}

/**
 * SQL: whether nothing will change job `j` any more. A job that ran has its GPU hours on a billing line. Deployments,
 * and pipelines that have not ended, need the rows of their jobs.
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
 * Moves jobs that ended more than `afterS` seconds ago, and their attempts, to `archived_jobs` and `archived_attempts`.
 * Reads `limit` ended jobs, oldest first, and moves those that are settled and that no other transaction has locked.
 * The rows of their uploaded files are deleted: they were needed only until the job's end.
 *
 * @param after only jobs after this one; undefined for the first page.
 * @returns the number of moved jobs, and the last job of the page if another page follows.
 */
export async function archiveJobs(
  db: Queryable,
  afterS: number,
  after: Ended | undefined,
  limit: number,
) {
  const row = await maybeOne<{ moved: number; next: Ended | null }>(
    db,
    `with page as materialized (
       select job_id, completed_at from jobs
       -- The condition on user_id is that of an index.
       where completed_at is not null and length(user_id) > 0
         and ${isOlder("completed_at", "make_interval(secs => $1)")}
         and ($2::text is null or (completed_at, job_id) > ($2::timestamptz, $3::text))
       order by completed_at, job_id limit $4),
     settled as materialized (
       select j.job_id from jobs j join page using (job_id) where ${IS_SETTLED}
       order by j.job_id for update of j skip locked),
     files as (delete from attempt_files f using settled where f.job_id = settled.job_id),
     ended_attempts as (delete from attempts a using settled where a.job_id = settled.job_id returning a.*),
     kept_attempts as (insert into archived_attempts select * from ended_attempts),
     ended as (delete from jobs j using settled where j.job_id = settled.job_id returning j.*),
     kept as (insert into archived_jobs select * from ended returning job_id)
     select (select count(*)::int from kept) as moved,
            (select jsonb_build_object('job_id', job_id, 'ended_at', completed_at::text) from page
             order by completed_at, job_id offset $4::int - 1 limit 1) as next`,
    [afterS, after?.ended_at ?? null, after?.job_id ?? null, limit],
  );
  return { moved: row?.moved ?? 0, next: row?.next ?? undefined };
}
