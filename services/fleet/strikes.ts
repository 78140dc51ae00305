import type { WorkerStatus } from "../../core/jobs/states";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";

/** Failures in a row that bench a worker, while others that could have had its jobs succeed. */
const STRIKES_OUT = 3;

/**
 * Most strikes that a worker has, and entries of whom and what they are of: where nobody else succeeds, failures go
 * on. More than these say nothing new.
 */
const MOST_STRIKES = 20;

/** One more entry, and the last ones of those before it. */
const appended = (column: string, entry: string): string =>
  `array_append(w.${column}[cardinality(w.${column}) - ${MOST_STRIKES - 2}:], ${entry})`;

/** Of another tenant than its owner, any number of failures in a row is one: its jobs may be what is wrong. */
const COUNTS = "(j.user_id = w.user_id or j.user_id <> all (w.struck_by))";

const STRIKES = `least(w.strikes + 1, ${MOST_STRIKES})`;

/**
 * An attempt of a job failed or was lost on this worker; the third in a row benches it. A job that has failed on
 * another worker before is to blame itself: that does not count, here or there.
 *
 * @returns the worker's status, where it was struck.
 */
export async function strikeWorker(
  db: Queryable,
  workerId: string,
  jobId: string,
): Promise<WorkerStatus | undefined> {
  if ((await takeBackStrikes(db, workerId, jobId)) > 0) return undefined;
  const isOut = `w.strikes + 1 >= ${STRIKES_OUT} and exists (
    select from workers o
    where o.worker_id <> w.worker_id and o.succeeded_at >= w.strikes_since
      and (o.user_id = w.user_id or o.shared or w.shared))`;
  const row = await maybeOne<{ status: WorkerStatus }>(
    db,
    `update workers w set strikes = ${STRIKES}, strikes_since = coalesce(w.strikes_since, now()),
            struck_by = ${appended("struck_by", "j.user_id")},
            struck_jobs = ${appended("struck_jobs", "j.job_id")},
            error_code = case when ${isOut} then 'failing' else w.error_code end,
            status_reason = case when ${isOut} then (${STRIKES}) || ' attempts in a row failed or '
              || 'were lost here while other workers succeeded' else w.status_reason end,
            status = case when ${isOut} and w.status in ('idle', 'busy') then 'error' else w.status end
     from jobs j where w.worker_id = $1 and j.job_id = $2 and ${COUNTS} returning w.status`,
    [workerId, jobId],
  );
  return row?.status;
}

/**
 * On how many other workers this job failed. Where that is one, what counted there is taken back; if it was benched
 * for it, it is well again. One that somebody else changes right now keeps its strikes.
 */
async function takeBackStrikes(db: Queryable, workerId: string, jobId: string): Promise<number> {
  const row = await maybeOne<{ others: number }>(
    db,
    `with failed as (
       select distinct worker_id from attempts
       where job_id = $2 and worker_id <> $1 and outcome = any('{failed,worker_lost,timeout}')),
     blameless as (
       select worker_id,
              greatest(0, w.strikes - cardinality(array_positions(w.struck_jobs, $2))) as left_over,
              (select coalesce(array_agg(s.by order by s.n), '{}')
               from unnest(w.struck_by, w.struck_jobs) with ordinality s (by, job, n)
               where s.job is distinct from $2) as left_by
       from workers w join failed using (worker_id)
       where (select count(*) from failed) = 1 and $2 = any(w.struck_jobs)
       for no key update of w skip locked),
     taken_back as (
       update workers w set strikes = left_over, struck_jobs = array_remove(w.struck_jobs, $2),
              strikes_since = case when left_over > 0 then strikes_since end,
              struck_by = case when left_over > 0 then left_by else '{}' end,
              status = case when ${IS_BENCHED} and w.status = 'error' then 'idle' else w.status end,
              status_reason = case when ${IS_BENCHED} and w.status = 'error' then null else w.status_reason end,
              error_code = case when ${IS_BENCHED} then null else w.error_code end
       from blameless b where w.worker_id = b.worker_id)
     select count(*)::int as others from failed`,
    [workerId, jobId],
  );
  return row?.others ?? 0;
}

/** A dead one would be benched again as soon as it is heard. */
const IS_BENCHED = `w.error_code = 'failing' and w.status in ('error', 'dead') and left_over < ${STRIKES_OUT}`;
