import { execute, type Queryable } from "../../platform/postgres/pool";

/**
 * The largest error of a step's length, in ms. It is less than half of MIN_STEP_MS (the shortest
 * step, see core/clock-steps.ts), so that times before a step can be distinguished from times after
 * it.
 */
export const PRECISE_MS = 2_000;

/**
 * SQL, for a clock that was set forward: the latest time that may have been stored before the step.
 * This is the clock's time when the step was noticed, minus the step's length. PRECISE_MS is added
 * because the length is not exact.
 */
const BEFORE_FORWARD = `clock_timestamp() - step.noticed - step.by + interval '${PRECISE_MS} ms'`;

/**
 * The tables whose stored times are shifted by a clock step, each with its key columns. All
 * transactions lock rows in this order of tables, and within a table by key.
 */
const KEYS = {
  jobs: ["job_id"],
  attempts: ["job_id", "attempt"],
  attempt_files: ["job_id", "attempt", "path"],
  workers: ["worker_id"],
  deployments: ["deployment_id"],
  placements: ["deployment_id", "placement"],
  pipelines: ["pipeline_id"],
  outbox: ["job_id", "attempt"],
  billing_lines: ["line_id"],
  rate_buckets: ["user_id"],
};
type Table = keyof typeof KEYS;

const HELD = "state in ('assigned', 'running')";
const CANCEL_REQUESTED_AT =
  "(select cancel_requested_at from jobs where jobs.job_id = attempts.job_id)";

/**
 * Columns with times of running jobs and attempts. In each row, the time in `column` moves if the
 * time in `since` is before the step.
 */
const RUNS: [table: Table, column: string, condition: string, since: string][] = [
  ["jobs", "started_at", "status not in ('completed', 'failed')", "started_at"],
  ["attempts", "assigned_at", HELD, "assigned_at"],
  ["attempts", "started_at", HELD, "started_at"],
  ["attempts", "deadline_at", HELD, "started_at"],
  // `cancel_by` counts from the cancel request, not from the attempt's start. So it moves only if
  // the cancel was requested before the step.
  ["attempts", "cancel_by", "state = 'running' and cancel_by is not null", CANCEL_REQUESTED_AT],
];

/** The condition of the index billing_lines_to_export. */
const UNEXPORTED = "exported_at is null and cost_usd > 0";

/**
 * Columns that contain the start or the end of a wait. After a step back, a wait would take too
 * long, so each time that now lies in the future is shifted by the step. After a step forward, a
 * wait ends too early. This is harmless for most columns, so they are not shifted. It is not
 * harmless for the columns marked "moves": if they were not shifted, Forge would end a placement,
 * or give up an export, too early.
 *
 * Every column that SQL compares with the clock is in this list, or record-step.test.ts says why
 * not. A condition must not select a set of rows that grows without bound: transactions that need
 * the clock wait while a step is recorded.
 */
export const WAITS: [table: Table, column: string, condition: string, afterForward?: "moves"][] = [
  ["attempts", "queued_at", "ended_at is null"],
  ["workers", "available_until", "true"],
  ["workers", "bootstrap_seen_at", "true"],
  ["rate_buckets", "refilled_at", "true"],
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
  ["billing_lines", "export_due_at", `${UNEXPORTED} and export_due_at < 'infinity'`],
  ["billing_lines", "export_asked_at", `${UNEXPORTED} and export_asked_at is not null`, "moves"],
];

interface Move {
  table: Table;
  column: string;
  /** SQL condition: the rows to move. */
  when: string;
}

/**
 * Returns the times that move when a step is recorded.
 *
 * After a step back, the clock repeats some times. The step was at most `gap` seconds ago, so the
 * repeated times are within the last `gap` seconds. If an attempt started at such a time, it is
 * unknown whether it started before or after the step, so its times don't move. If the attempt did
 * start before the step, its deadline becomes too late and its measured duration too short.
 */
function movesOf(isForward: boolean): Move[] {
  const began = (time: string): string =>
    isForward
      ? `${time} <= ${BEFORE_FORWARD}`
      : `${time} not between clock_timestamp() - step.gap and clock_timestamp()`;
  const runs = RUNS.map(([table, column, condition, since]) => ({
    table,
    column,
    when: `${condition} and ${began(since)}`,
  }));
  // After a clock step forward, change the times that were written before the step. After a step
  // back, change the times that are now in the future.
  const waits = WAITS.filter(([, , , afterForward]) => !isForward || afterForward === "moves").map(
    ([table, column, condition]) => ({
      table,
      column,
      when: `${condition} and ${column} ${isForward ? `<= ${BEFORE_FORWARD}` : "> clock_timestamp()"}`,
    }),
  );
  return [...runs, ...waits];
}

/** Moves the times of one table. Locks all affected rows in key order before it changes any. */
async function moveTimes(
  db: Queryable,
  table: Table,
  moves: Move[],
  times: [byS: number, gapS: number, noticedS: number],
): Promise<number> {
  if (moves.length === 0) return 0;
  const keys = KEYS[table].map((column) => `${table}.${column}`);
  const sets = moves.map(
    ({ column, when }) =>
      `${column} = case when ${when} then ${table}.${column} + step.by else ${table}.${column} end`,
  );
  return await execute(
    db,
    `with step as (
       select make_interval(secs => $1::float8) as by, make_interval(secs => $2::float8) as gap,
              make_interval(secs => $3::float8) as noticed),
     due as materialized (
       select ${keys.join(", ")} from ${table}, step
       where ${moves.map(({ when }) => `(${when})`).join(" or ")}
       order by ${keys.join(", ")} for no key update of ${table})
     update ${table} set ${sets.join(", ")} from step, due
     where ${KEYS[table].map((column) => `${table}.${column} = due.${column}`).join(" and ")}`,
    times,
  );
}

/**
 * Records a step and adds `byS` to the times of unfinished work: attempts then run and are billed
 * as if the clock had not been set. The times by which deployments are billed don't move: their
 * bill uses clock_offset_s() (lifetime.ts). Before this call, the caller must wait until the
 * transactions that started before the step have ended, then call `lockSteps`, then read the clock.
 *
 * @param byS the step in seconds; negative if the clock was set back.
 * @param gapS the longest possible time since the step, in seconds.
 * @param noticedS seconds since the step was noticed. Everything that started after this moment
 *   started after the step.
 * @returns how many attempts were moved.
 */
export async function recordStep(
  db: Queryable,
  byS: number,
  gapS: number,
  noticedS = 0,
): Promise<number> {
  await execute(db, "insert into clock_steps (seen_at, by_s) values (clock_timestamp(), $1)", [
    byS,
  ]);
  const moves = movesOf(byS > 0);
  let attempts = 0;
  for (const table of Object.keys(KEYS) as Table[]) {
    const ofTable = moves.filter((move) => move.table === table);
    const moved = await moveTimes(db, table, ofTable, [byS, gapS, noticedS]);
    if (table === "attempts") attempts = moved;
  }
  return attempts;
}
