import type { JobType } from "../../core/jobs/job-types";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

/**
 * Value of column `attempt` in the entry that starts a job's workflow. Real attempts count from 1.
 * The database generates column `topic` from column `attempt`, because servers of the previous
 * release insert and read these rows without `topic`.
 */
export const START_NUMBER = 0;

/** The fields of a job that the start of its workflow needs. */
export interface StartableJob {
  job_id: string;
  user_id: string;
  job_type: JobType;
  max_attempts: number;
  request_id: string;
}

/** An outbox entry of a job, with the fields that its delivery needs. */
export interface JobEntry extends StartableJob {
  /** The start of the job's workflow, or the outcome of an attempt. */
  topic: "start" | "outcome";
  /** Number of the attempt; `START_NUMBER` if the entry is the start of the job's workflow. */
  attempt: number;
  tries: number;
  /** A later attempt exists, so the workflow already has this outcome. */
  superseded: boolean;
  /** The entry that starts the job's workflow is not delivered yet. It may be this entry itself. */
  startIsPending: boolean;
  /** If true, an outcome's entry is kept until the workflow has billed the job (job-topic.ts). */
  jobHasFailed: boolean;
}

const ENTRY = `o.job_id, o.topic, o.attempt, o.tries, j.user_id, j.job_type, j.max_attempts, j.request_id,
  o.topic = 'outcome' and exists (
    select from attempts a where a.job_id = o.job_id and a.attempt > o.attempt) as superseded,
  exists (select from outbox s where s.job_id = o.job_id and s.topic = 'start') as "startIsPending",
  j.status = 'failed' as "jobHasFailed"`;

/** The entry of an outcome that this process just committed; undefined if it has been delivered. */
export async function findOutcome(db: Queryable, jobId: string, attempt: number) {
  return await maybeOne<JobEntry>(
    db,
    `select ${ENTRY} from outbox o join jobs j using (job_id) where o.job_id = $1 and o.attempt = $2`,
    [jobId, attempt],
  );
}

/**
 * Leases due entries for `leaseS` seconds, so that no row lock is held during the call to Temporal.
 */
export async function claimJobEntries(db: Queryable, leaseS: number, limit: number) {
  return await all<JobEntry>(
    db,
    `with due as (
       select job_id, attempt from outbox where due_at <= now()
       order by due_at limit $2 for update skip locked)
     update outbox o set due_at = now() + make_interval(secs => $1)
     from due, jobs j
     where o.job_id = due.job_id and o.attempt = due.attempt and j.job_id = o.job_id
     returning ${ENTRY}`,
    [leaseS, limit],
  );
}

/**
 * Removes delivered entries. Keeps an entry whose `tries` has changed since it was read. If an
 * outcome was delivered, also removes the entry that starts the job's workflow: the delivery proves
 * that the workflow was started. To avoid deadlocks, locks the entries in key order, as
 * services/clock/record-step.ts does. Idempotent.
 */
export async function removeJobEntries(db: Queryable, entries: JobEntry[]): Promise<void> {
  const rows = entries.flatMap(({ job_id, attempt, tries, startIsPending, superseded }) => {
    const outcome = { job_id, number: attempt, tries };
    const start = { job_id, number: START_NUMBER, tries: null };
    return startIsPending && !superseded ? [start, outcome] : [outcome];
  });
  await execute(
    db,
    `with delivered as materialized (
       select o.job_id, o.attempt
       from outbox o join unnest($1::text[], $2::int[], $3::int[]) d (job_id, attempt, tries) using (job_id, attempt)
       where d.tries is null or o.tries = d.tries
       order by o.job_id, o.attempt for update of o)
     delete from outbox o using delivered d where o.job_id = d.job_id and o.attempt = d.attempt`,
    [
      rows.map(({ job_id }) => job_id),
      rows.map(({ number }) => number),
      rows.map(({ tries }) => tries),
    ],
  );
}

/**
 * Call when a cancel has ended a job between two attempts. Adds the entry of the last attempt's
 * outcome again, so that the job's workflow learns of the cancel and bills the job. If the entry
 * still exists, increments its tries, so that `removeJobEntries` does not remove the entry after a
 * delivery that has already begun.
 */
export async function insertOutcomeEntry(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<void> {
  await execute(
    db,
    `insert into outbox (job_id, attempt, due_at) values ($1, $2, now())
     on conflict (job_id, attempt) do update set due_at = now(), tries = outbox.tries + 1`,
    [jobId, attempt],
  );
}

/** Call when a job has ended: its workflow needs no further delivery. */
export async function removeEntriesOfJob(db: Queryable, jobId: string): Promise<void> {
  await execute(db, "delete from outbox where job_id = $1", [jobId]);
}

export async function postponeJobEntry(
  db: Queryable,
  { job_id: jobId, attempt }: JobEntry,
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
