import type { JobType } from "../../core/jobs/job-types";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

/** A debt to Temporal, with what it takes to pay it. */
export interface Debt {
  job_id: string;
  attempt: number;
  tries: number;
  user_id: string;
  job_type: JobType;
  max_attempts: number;
  request_id: string;
  /** A later attempt exists, so this one's outcome has been taken in. */
  superseded: boolean;
  /** The start of the job's workflow is owed, by this debt or another one. */
  unstarted: boolean;
}

const DEBT = `o.job_id, o.attempt, o.tries, j.user_id, j.job_type, j.max_attempts, j.request_id,
  o.attempt > 0 and exists (
    select from attempts a where a.job_id = o.job_id and a.attempt > o.attempt) as superseded,
  exists (select from outbox s where s.job_id = o.job_id and s.attempt = 0) as unstarted`;

/** One debt, for the process that just wrote it. */
export async function findDebt(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<Debt | undefined> {
  return await maybeOne<Debt>(
    db,
    `select ${DEBT} from outbox o join jobs j using (job_id) where o.job_id = $1 and o.attempt = $2`,
    [jobId, attempt],
  );
}

/** Takes due debts for `leaseS` seconds: no lock is held while Temporal is called. */
export async function claimDebts(db: Queryable, leaseS: number, limit: number): Promise<Debt[]> {
  return await all<Debt>(
    db,
    `with due as (
       select job_id, attempt from outbox where due_at <= now()
       order by due_at limit $2 for update skip locked)
     update outbox o set due_at = now() + make_interval(secs => $1)
     from due, jobs j
     where o.job_id = due.job_id and o.attempt = due.attempt and j.job_id = o.job_id
     returning ${DEBT}`,
    [leaseS, limit],
  );
}

/** What was paid. */
export type Paid = Pick<Debt, "job_id" | "attempt">;

export async function settleDebts(db: Queryable, paid: Paid[]): Promise<void> {
  await execute(
    db,
    `delete from outbox o using unnest($1::text[], $2::int[]) paid (job_id, attempt)
     where o.job_id = paid.job_id and o.attempt = paid.attempt`,
    [paid.map(({ job_id }) => job_id), paid.map(({ attempt }) => attempt)],
  );
}

/** Nothing is owed for a job that has ended. */
export async function settleAllDebts(db: Queryable, jobId: string): Promise<void> {
  await execute(db, "delete from outbox where job_id = $1", [jobId]);
}

export async function postponeDebt(
  db: Queryable,
  jobId: string,
  attempt: number,
  forS: number,
  error: string,
): Promise<void> {
  await execute(
    db,
    `update outbox set due_at = now() + make_interval(secs => $3), tries = tries + 1, last_error = $4
     where job_id = $1 and attempt = $2`,
    [jobId, attempt, forS, error],
  );
}
