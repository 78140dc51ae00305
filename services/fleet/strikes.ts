import type { WorkerStatus } from "../../core/jobs/states";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";

/**
 * This many consecutive failures take a worker out of service, if another worker has succeeded
 * since the first failure. Both workers must have the same owner, or at least one of them must be
 * shared.
 */
const STRIKES_OUT = 3;

/**
 * The maximum number of strikes of a worker, and of entries in `struck_by` and in `struck_jobs`.
 * While jobs fail on all workers, no worker succeeds, so no worker is taken out of service. Without
 * this limit, the strikes would then grow without bound.
 */
const MOST_STRIKES = 20;

/** SQL: the column with an entry appended, cut to the last MOST_STRIKES entries. */
const appended = (column: string, entry: string): string =>
  `array_append(w.${column}[cardinality(w.${column}) - ${MOST_STRIKES - 2}:], ${entry})`;

/**
 * SQL: whether a failure of job `j` counts as a strike. Until the worker's next success, all
 * failed jobs of a tenant that does not own the worker count as one strike, because that tenant's
 * jobs may be the cause.
 */
const COUNTS_AS_STRIKE = "(j.user_id = w.user_id or j.user_id <> all (w.struck_by))";

const STRIKES = `least(w.strikes + 1, ${MOST_STRIKES})`;

/**
 * Records that an attempt failed or was lost on this worker. The third such attempt in a row takes
 * the worker out of service, if other workers succeed. If the job has failed on another worker
 * before, the job is the likely cause: its failures then count against neither worker.
 *
 * @returns the worker's new status; undefined if the failure did not count.
 */
export async function strikeWorker(
  db: Queryable,
  workerId: string,
  jobId: string,
): Promise<WorkerStatus | undefined> {
  if ((await takeBackStrikes(db, workerId, jobId)) > 0) return undefined;
  // A worker that is being set up is out of service anyway, and keeps the error of its bootstrap.
  const isOut = `w.strikes + 1 >= ${STRIKES_OUT} and w.status <> 'bootstrapping'
    and w.error_code is distinct from 'bootstrap_failed' and exists (
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
     from jobs j where w.worker_id = $1 and j.job_id = $2 and ${COUNTS_AS_STRIKE} returning w.status`,
    [workerId, jobId],
  );
  return row?.status;
}

/**
 * Returns the number of other workers on which this job failed. If there is just one, takes back
 * that worker's strikes for this job, and returns the worker to service if its strikes had taken it
 * out. Skips a locked worker.
 */
async function takeBackStrikes(db: Queryable, workerId: string, jobId: string): Promise<number> {
  const row = await maybeOne<{ others: number }>(
    db,
    `with failed as (
       select distinct worker_id from attempts
       where job_id = $2 and worker_id <> $1 and outcome = any('{failed,worker_lost,timeout}')),
     workers_to_clear as (
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
              status = case when ${RETURNS_TO_SERVICE} and w.status = 'error' then 'idle' else w.status end,
              status_reason = case when ${RETURNS_TO_SERVICE} and w.status = 'error' then null else w.status_reason end,
              error_code = case when ${RETURNS_TO_SERVICE} then null else w.error_code end
       from workers_to_clear b where w.worker_id = b.worker_id)
     select count(*)::int as others from failed`,
    [workerId, jobId],
  );
  return row?.others ?? 0;
}

/**
 * SQL: whether worker `w` can return to service: its strikes had taken it out, and fewer than
 * STRIKES_OUT remain. Also true for a dead worker, so that its `error_code` is cleared: otherwise,
 * its next heartbeat would set its status to `error`.
 */
const RETURNS_TO_SERVICE = `w.error_code = 'failing' and w.status in ('error', 'dead') and left_over < ${STRIKES_OUT}`;
