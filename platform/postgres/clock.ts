import { execute, maybeOne, type Queryable } from "./pool";

/** The database's time, the only one that is stored; ISO 8601 UTC. */
export async function readClock(db: Queryable): Promise<string> {
  const row = await maybeOne<{ now: Date }>(db, "select now()");
  if (!row) throw new Error("select now() returned no row");
  return row.now.toISOString();
}

/** The database's time and the sum of the recorded steps, in ms; the sum whole, so that it differs only by a step. */
export async function readClockAndSteps(
  db: Queryable,
): Promise<{ databaseMs: number; recordedMs: number }> {
  // The time of a transaction is that of its start: the steps are read later.
  const row = await maybeOne<{ databaseMs: number; recordedMs: number }>(
    db,
    `select extract(epoch from clock_timestamp())::float8 * 1000 as "databaseMs",
            round(clock_offset_s() * 1000)::float8 as "recordedMs"`,
  );
  if (!row) throw new Error("a select without a table has one row");
  return row;
}

/** Longest time from a step to its record. Rows written in between have times of the new clock. */
const NOTICED_WITHIN = "interval '15 s'";

/**
 * SQL: whether a time lies further back than `age`, an interval, also without the steps forward since then. What is
 * removed for its age is removed by this: else a clock that is set forward by mistake deletes it for good. A step back
 * makes nothing older. Of a step that is not recorded yet only ClockWatch.transaction knows.
 *
 * A segment begins with a step, at `since`, and ends with the next one. What was written in it is old if its time is
 * before `old_before`; then everything written in earlier segments is old, too. A time from `until` on is of a later
 * segment. So there is one time before which everything is old: Postgres computes it once per statement, and uses an
 * index to find what is before it.
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
 * SQL: how many seconds ago a time was, without the steps forward since then; 0 for one that is after now. By this,
 * and not by the clock alone, something is given up for its age.
 */
export const secondsSince = (time: string): string =>
  `greatest(0, extract(epoch from now() - ${time}) - greatest(0, (
     select coalesce(sum(by_s), 0) from clock_steps where step_id > (
       select coalesce(max(step_id), 0) from clock_steps
       where seen_at - ${NOTICED_WITHIN} <= ${time}))))::float8`;

/**
 * Deletes rows that are older than `age`, `limit` at most: of very many one statement would delete none in its time.
 *
 * @returns how many.
 */
export async function deleteOlder(
  db: Queryable,
  { table, time, age }: { table: string; time: string; age: string },
  limit: number,
): Promise<number> {
  const isOld = isOlder(time, age);
  // Looked at again: a row may have been written anew since it was found.
  return await execute(
    db,
    `delete from ${table}
     where ctid = any (array(select ctid from ${table} where ${isOld} limit $1)) and ${isOld}`,
    [limit],
  );
}

/** Sent with BEGIN: the transaction's time, which is that of its beginning, in ms. */
export const READ_TRANSACTION_MS = "select extract(epoch from now())::float8 * 1000 as ms";

/** Any fixed number: of the processes that see a step, one at a time records it. */
const STEP_LOCK = 7_263_003;

/** Until the end of the transaction. */
export async function lockSteps(db: Queryable): Promise<void> {
  await execute(db, `select pg_advisory_xact_lock(${STEP_LOCK})`);
}

/** Notes that a process has seen no step but recorded ones from then to then (steadyMs). */
export async function saveLook(
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

/** Whether a process other than this one has looked all the time between, at least. */
export async function hasOtherRunOn(
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

/** Until when any process has looked (steadyMs). */
export async function findLastLook(db: Queryable): Promise<number | undefined> {
  const row = await maybeOne<{ last: number | null }>(
    db,
    "select max(until_ms) as last from clock_looks",
  );
  return row?.last ?? undefined;
}

/** Of processes that have ended; a later time is from before a step that is recorded now. */
export async function deleteLooksOutside(
  db: Queryable,
  fromMs: number,
  toMs: number,
): Promise<void> {
  await execute(db, "delete from clock_looks where until_ms not between $1 and $2", [fromMs, toMs]);
}
