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

/**
 * A look tells the clock this well at worst, so the length of a step may be wrong by it. It is less than half of the
 * shortest step: what began before one and what began after it are still told apart.
 */
export const PRECISE_MS = 2_000;

/** When a step forward was noticed: what is at or before this began on the clock as it was. */
const BEFORE_FORWARD = `clock_timestamp() - make_interval(secs => $1::float8 - ${PRECISE_MS / 1000})`;

/**
 * Which live attempts began on the clock as it was before a step. Of one that began just before it was noticed
 * this is not known where the clock was set back: such an attempt keeps its times, so its deadline is too late
 * rather than too early, and its measured time too short.
 */
const isBefore = (time: string): string => `case when $1 > 0 then ${time} <= ${BEFORE_FORWARD}
  else ${time} not between clock_timestamp() - make_interval(secs => $2) and clock_timestamp() end`;

/**
 * Times until which something waits, or since which: after a step back it would wait for as much longer. After a step
 * forward most of it is done too early, which does no harm; what "moves" would be given up too early, and moves on.
 * A column that SQL compares with the clock is in this list, or clock.test.ts says why not.
 */
export const WAITS: [table: string, column: string, condition: string, afterForward?: "moves"][] = [
  ["attempts", "queued_at", "state <> 'ended'"],
  ["workers", "available_until", "true"],
  ["workers", "bootstrap_seen_at", "true"],
  ["rate_buckets", "refilled_at", "true"],
  ["jobs", "moved_at", "true"],
  ["attempt_files", "moving_until", "movers > 0"],
  ["deployments", "seen_at", "true"],
  ["pipelines", "seen_at", "true"],
  ["placements", "missing_since", "state <> 'ended'", "moves"],
  ["placements", "unhealthy_since", "state <> 'ended'", "moves"],
  ["placements", "stopping_at", "state <> 'ended'", "moves"],
  ["deployments", "next_try_at", "true"],
  ["deployments", "tell_at", "true"],
  ["pipelines", "due_at", "true"],
  ["outbox", "due_at", "true"],
  ["billing_lines", "export_due_at", "exported_at is null"],
  ["billing_lines", "export_asked_at", "exported_at is null", "moves"],
];

/**
 * Records a step, negative where the clock was set back, and moves the times of jobs and attempts that go on with it:
 * they run and are billed for as long as if it had not been. Deployments are billed by clock_offset_s()
 * (lifetime.ts). The caller holds lockSteps, and has read the clock under it.
 *
 * @param gapS the step was not noticed for so long at most.
 * @returns how many attempts were moved.
 */
export async function recordStep(db: Queryable, byS: number, gapS: number): Promise<number> {
  await execute(db, "insert into clock_steps (seen_at, by_s) values (clock_timestamp(), $1)", [
    byS,
  ]);
  await execute(
    db,
    `update jobs set started_at = started_at + step.by
     from (select make_interval(secs => $1::float8) as by) step
     where status not in ('completed', 'failed') and ${isBefore("started_at")}`,
    [byS, gapS],
  );
  const moved = await execute(
    db,
    `update attempts set started_at = started_at + step.by, assigned_at = assigned_at + step.by,
            deadline_at = deadline_at + step.by
     from (select make_interval(secs => $1::float8) as by) step
     where state in ('assigned', 'running') and ${isBefore("coalesce(started_at, assigned_at)")}`,
    [byS, gapS],
  );
  // A cancel may be asked for after the step of an attempt that began before.
  await execute(
    db,
    `update attempts a set cancel_by = a.cancel_by + step.by
     from (select make_interval(secs => $1::float8) as by) step, jobs j
     where a.state = 'running' and a.cancel_by is not null and j.job_id = a.job_id
       and ${isBefore("j.cancel_requested_at")}`,
    [byS, gapS],
  );
  for (const [table, column, condition, afterForward] of WAITS) {
    if (byS > 0 && afterForward === undefined) continue;
    // Of a step forward, those from before it; of a step back, those that would be waited for too long.
    const concerned = byS > 0 ? `<= ${BEFORE_FORWARD}` : "> clock_timestamp()";
    await execute(
      db,
      `update ${table} set ${column} = ${column} + make_interval(secs => $1)
       where ${column} ${concerned} and ${condition}`,
      [byS],
    );
  }
  return moved;
}
