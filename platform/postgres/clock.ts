import { execute, maybeOne, type Queryable } from "./pool";

/** The database's time, in ISO 8601 UTC. All stored times come from the database's clock. */
export async function readClock(db: Queryable): Promise<string> {
  const row = await maybeOne<{ now: Date }>(db, "select now()");
  if (!row) throw new Error("select now() returned no row");
  return row.now.toISOString();
}

/**
 * SQL: the time of a change to a row that the transaction has locked. `now()` is when the transaction began: while it
 * waited for the lock, others may have written later times to the row. `now()` counts only if the clock was set back since.
 */
export const LOCKED_AT = "greatest(clock_timestamp(), now())";

/**
 * The database's time and the sum of all recorded steps, in ms. A step is a change of the
 * database's clock by more than its normal advance (services/clock/README.md).
 */
export async function readClockAndSteps(
  db: Queryable,
): Promise<{ databaseMs: number; recordedMs: number }> {
  // Not now(), which is the start of the transaction: the clock may have been set, and the step
  // recorded, between that time and the reading of the steps.
  const row = await maybeOne<{ databaseMs: number; recordedMs: number }>(
    db,
    `select extract(epoch from clock_timestamp())::float8 * 1000 as "databaseMs",
            round(clock_offset_s() * 1000)::float8 as "recordedMs"`,
  );
  if (!row) throw new Error("a select without a table has one row");
  return row;
}

/**
 * The longest time from a step of the clock until it is recorded. Rows that are written in between
 * already have times of the changed clock.
 */
const NOTICED_WITHIN = "interval '15 s'";

/**
 * SQL condition: a time is older than `age`, an interval, not counting forward steps of the clock
 * since then. Use it for every deletion by age: otherwise a clock set forward by mistake would
 * delete data. A backward step makes nothing older. ClockWatch.transaction handles steps that are
 * not recorded yet.
 *
 * The recorded steps split the time line into segments, each from `since` to `until`. Each segment
 * has its own limit: its rows before `old_before` are old. In the newest segment that contains old
 * rows, that limit decides, and everything before that segment is old. So one time is enough: all
 * rows before it are old, and no others. The subquery returns that time. Postgres computes it once
 * per statement, and can find older rows by an index.
 */
export const isOlder = (time: string, age: string): string =>
  `${time} < (
     select max(least(until, old_before)) from (
       select since, min(since) over later as until,
              now() - ${age} - make_interval(secs => greatest(0, sum(by_s) over later)) as old_before
       from (select step_id, seen_at - ${NOTICED_WITHIN} as since, by_s from clock_steps
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
       where seen_at - ${NOTICED_WITHIN} <= ${time}))))::float8`;

/**
 * Deletes at most `limit` rows that are older than `age`: one statement for very many rows would
 * time out. Returns the number of deleted rows.
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

/** Advisory lock id (any fixed number): one process at a time records steps. */
const STEP_LOCK = 7_263_003;

/** Takes the lock until the end of the transaction. */
export async function lockSteps(db: Queryable): Promise<void> {
  await execute(db, `select pg_advisory_xact_lock(${STEP_LOCK})`);
}

/**
 * Records that this process watched the clock between two times (steadyMs, the time without the
 * recorded steps), and that every step in between is recorded.
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
 * Deletes records whose last check of the clock is outside this interval (steadyMs): those of
 * processes that have ended, and those that a step has put into the future.
 */
export async function deleteLooksOutside(
  db: Queryable,
  fromMs: number,
  toMs: number,
): Promise<void> {
  await execute(db, "delete from clock_looks where until_ms not between $1 and $2", [fromMs, toMs]);
}
