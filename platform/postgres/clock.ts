import { execute, maybeOne, type Queryable } from "./pool";

/** The database's time, in ISO 8601 UTC. All stored times come from the database's clock. */
export async function readClock(db: Queryable): Promise<string> {
  const row = await maybeOne<{ now: Date }>(db, "select now()");
  if (!row) throw new Error("select now() returned no row");
  return row.now.toISOString();
}

/**
 * SQL expression: the time of a change to a row that the transaction has locked. `now()` is the
 * start of the transaction, which could be too early: while this transaction waited for the lock,
 * other transactions may have written later times to the row. So the expression uses the current
 * time, `clock_timestamp()`. If the clock was set back during the transaction, it uses `now()`.
 */
export const LOCKED_AT = "greatest(clock_timestamp(), now())";

/**
 * The database's time and the sum of all recorded steps, in ms. A step is a jump of the database's
 * clock, forward or back (services/clock/README.md).
 */
export async function readClockAndSteps(
  db: Queryable,
): Promise<{ databaseMs: number; recordedMs: number }> {
  // Don't use now(), which returns when the transaction started. clock_offset_s() may already
  // include a step of the clock that happened after that.
  const row = await maybeOne<{ databaseMs: number; recordedMs: number }>(
    db,
    `select extract(epoch from clock_timestamp())::float8 * 1000 as "databaseMs",
            round(clock_offset_s() * 1000)::float8 as "recordedMs"`,
  );
  if (!row) throw new Error("a select without a table has one row");
  return row;
}

/**
 * The longest time from a step of the clock until the step is recorded (`seen_at`). Rows that are
 * written during this time already have times of the changed clock. So the SQL below assumes that
 * the step happened this long before `seen_at`.
 */
const MAX_DETECTION_DELAY = "interval '15 s'";

/**
 * SQL condition: a time is more than `age` in the past. `age` is an SQL interval. If the clock was
 * set forward after that time, the length of the step is not part of the age. If the clock was set
 * back, the computed age is too small, so data are kept longer. Use this for every deletion by age:
 * otherwise a clock set forward by mistake would delete data. ClockWatch.transaction handles steps
 * that are not recorded yet.
 *
 * How it works: the recorded steps divide the timeline into segments. A segment begins at `since`
 * and ends at `until`. Its times before `old_before` are old. The newest segment with old times
 * gives a single limit for all times: its `old_before`, or its `until` if the whole segment is old.
 * Times in earlier segments are old too. Because there is a single limit, Postgres computes it once
 * per statement, and can find the old rows by an index.
 */
export const isOlder = (time: string, age: string): string =>
  `${time} < (
     select max(least(until, old_before)) from (
       select since, min(since) over later as until,
              now() - ${age} - make_interval(secs => greatest(0, sum(by_s) over later)) as old_before
       from (select step_id, seen_at - ${MAX_DETECTION_DELAY} as since, by_s from clock_steps
             union all select 0, '-infinity', 0) steps
       window later as (order by step_id desc rows between unbounded preceding and 1 preceding)) segments
     where since < old_before)`;

/**
 * SQL expression: seconds since a time, not counting forward steps of the clock since then; 0 for a
 * future time. Use it for every time-out.
 */
export const secondsSince = (time: string): string =>
  `greatest(0, extract(epoch from now() - ${time}) - greatest(0, (
     select coalesce(sum(by_s), 0) from clock_steps where step_id > (
       select coalesce(max(step_id), 0) from clock_steps
       where seen_at - ${MAX_DETECTION_DELAY} <= ${time}))))::float8`;

/**
 * Deletes rows that are older than `age`, at most `limit`: a statement that deletes very many rows
 * would time out. Returns the number of deleted rows.
 */
export async function deleteOlder(
  db: Queryable,
  { table, time, age }: { table: string; time: string; age: string },
  limit: number,
): Promise<number> {
  const isOld = isOlder(time, age);
  // Check the age again: a row may have been updated since the subquery found it.
  return await execute(
    db,
    `delete from ${table}
     where ctid = any (array(select ctid from ${table} where ${isOld} limit $1)) and ${isOld}`,
    [limit],
  );
}

/**
 * A statement that is sent together with BEGIN. It returns the start time of the transaction, in
 * ms.
 */
export const READ_TRANSACTION_MS = "select extract(epoch from now())::float8 * 1000 as ms";

/** Advisory lock id (any fixed number): one process at a time records clock steps. */
const STEP_LOCK = 7_263_003;

/** Takes STEP_LOCK until the end of the transaction. */
export async function lockSteps(db: Queryable): Promise<void> {
  await execute(db, `select pg_advisory_xact_lock(${STEP_LOCK})`);
}

/**
 * Records that this process has watched the clock from `sinceMs` to `untilMs`. All steps in this
 * interval are already recorded. Both times are in steadyMs: the database's time minus the recorded
 * steps.
 */
export async function saveClockCheck(
  db: Queryable,
  processId: string,
  sinceMs: number,
  untilMs: number,
): Promise<void> {
  await execute(
    db,
    `insert into clock_looks (process_id, since_ms, until_ms) values ($1, $2, $3)
     on conflict (process_id) do update set since_ms = excluded.since_ms, until_ms = excluded.until_ms`,
    [processId, sinceMs, untilMs],
  );
}

/** Whether another process has watched the clock during this whole interval (steadyMs). */
export async function didOtherProcessWatch(
  db: Queryable,
  processId: string,
  fromMs: number,
  toMs: number,
): Promise<boolean> {
  const row = await maybeOne(
    db,
    "select from clock_looks where process_id <> $1 and since_ms <= $2 and until_ms > $3 limit 1",
    [processId, fromMs, toMs],
  );
  return row !== undefined;
}

/** The latest time at which any process has checked the clock (steadyMs). */
export async function findLastClockCheck(db: Queryable): Promise<number | undefined> {
  const row = await maybeOne<{ last: number | null }>(
    db,
    "select max(until_ms) as last from clock_looks",
  );
  return row?.last ?? undefined;
}

/**
 * Deletes the records of processes whose last check of the clock is outside an interval
 * (steadyMs). If the last check is earlier, the process no longer runs. If it is later, it is in
 * the future, which only a step of the clock can cause.
 */
export async function deleteClockChecksOutside(
  db: Queryable,
  fromMs: number,
  toMs: number,
): Promise<void> {
  await execute(db, "delete from clock_looks where until_ms not between $1 and $2", [fromMs, toMs]);
}
