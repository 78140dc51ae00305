import { all, execute, type Queryable } from "../../platform/postgres/pool";
import type { AttemptRow } from "../jobs/attempts";

export interface OverdueAttempt {
  job_id: string;
  attempt: number;
  worker_id: string;
}

/** Assignments that are older than `forS` seconds and that the worker has not fetched. */
export async function listUnfetched(db: Queryable, forS: number) {
  return await all<OverdueAttempt>(
    db,
    `select job_id, attempt, worker_id from attempts
     where state = 'assigned' and assigned_at < now() - make_interval(secs => $1)
     order by job_id limit 100`,
    [forS],
  );
}

/** Attempts that are past their deadline, or past the grace period of a cancel. */
export async function listOverdue(db: Queryable) {
  return await all<OverdueAttempt>(
    db,
    `select job_id, attempt, worker_id from attempts
     where state = 'running' and (deadline_at < now() or cancel_by < now())
     order by job_id limit 100`,
  );
}

/**
 * After this many consecutive heartbeats in which a worker reports no job, its attempt counts as
 * denied: the worker does not run it.
 */
const DENIALS = 5;

export const isDenied = ({ denials }: Pick<AttemptRow, "denials">): boolean => denials >= DENIALS;

/**
 * Denied attempts that were dispatched more than `forS` seconds ago: by then the worker should have
 * the job.
 */
export async function listNotRun(db: Queryable, forS: number) {
  return await all<OverdueAttempt>(
    db,
    `select job_id, attempt, worker_id from attempts
     where state = 'running' and denials >= ${DENIALS}
       and started_at < now() - make_interval(secs => $1)
     order by job_id limit 100`,
    [forS],
  );
}

/**
 * Counts for each running attempt the consecutive heartbeats in which its worker reports no job. A
 * heartbeat that names the attempt's job resets the count.
 */
export async function recordDenials(
  db: Queryable,
  reports: { jobId: string; workerId: string; isDenied: boolean }[],
): Promise<void> {
  await execute(
    db,
    `with reports as (
       select * from unnest($1::text[], $2::text[], $3::bool[]) reports (job_id, worker_id, is_denied)),
     locked as (
       select job_id, attempt, is_denied from attempts join reports using (job_id, worker_id)
       where state = 'running' order by job_id for no key update of attempts skip locked)
     update attempts a set denials = case when is_denied then denials + 1 else 0 end
     from locked l where a.job_id = l.job_id and a.attempt = l.attempt`,
    [
      reports.map(({ jobId }) => jobId),
      reports.map(({ workerId }) => workerId),
      reports.map((report) => report.isDenied),
    ],
  );
}
