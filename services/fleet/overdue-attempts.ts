import { all, execute, type Queryable } from "../../platform/postgres/pool";
import type { AttemptRow } from "../jobs/attempts";

export interface OverdueAttempt {
  job_id: string;
  attempt: number;
  worker_id: string;
}

/** Assignments not fetched in time. */
export async function listUnfetched(db: Queryable, forS: number): Promise<OverdueAttempt[]> {
  return await all<OverdueAttempt>(
    db,
    `select job_id, attempt, worker_id from attempts
     where state = 'assigned' and assigned_at < now() - make_interval(secs => $1)
     order by job_id limit 100`,
    [forS],
  );
}

/** Attempts past their deadline, and those past a cancel's grace. */
export async function listOverdue(db: Queryable): Promise<OverdueAttempt[]> {
  return await all<OverdueAttempt>(
    db,
    `select job_id, attempt, worker_id from attempts
     where state = 'running' and (deadline_at < now() or cancel_by < now())
     order by job_id limit 100`,
  );
}

/** So many heartbeats in a row that say "no job": then its worker does not have what it was handed. */
const DENIALS = 5;

export const isDenied = ({ denials }: Pick<AttemptRow, "denials">): boolean => denials >= DENIALS;

/** Attempts that run for longer than `forS`, in which a hand-out has arrived, and whose workers say that they run nothing. */
export async function listDenied(db: Queryable, forS: number): Promise<OverdueAttempt[]> {
  return await all<OverdueAttempt>(
    db,
    `select job_id, attempt, worker_id from attempts
     where state = 'running' and denials >= ${DENIALS}
       and started_at < now() - make_interval(secs => $1)
     order by job_id limit 100`,
    [forS],
  );
}

/** Counts the heartbeats in a row that deny an attempt; one that names it ends the row. */
export async function noteDenials(
  db: Queryable,
  told: { jobId: string; workerId: string; isDenied: boolean }[],
): Promise<void> {
  await execute(
    db,
    `with told as (
       select * from unnest($1::text[], $2::text[], $3::bool[]) told (job_id, worker_id, is_denied)),
     locked as (
       select job_id, attempt, is_denied from attempts join told using (job_id, worker_id)
       where state = 'running' order by job_id for no key update of attempts skip locked)
     update attempts a set denials = case when is_denied then denials + 1 else 0 end
     from locked l where a.job_id = l.job_id and a.attempt = l.attempt`,
    [
      told.map(({ jobId }) => jobId),
      told.map(({ workerId }) => workerId),
      told.map((each) => each.isDenied),
    ],
  );
}
