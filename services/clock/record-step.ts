import { execute, type Queryable } from "../../platform/postgres/pool";

/**
 * A look tells the clock this well at worst, so the length of a step may be wrong by it. It is less than half of the
 * shortest step: what began before one and what began after it are still told apart.
 */
export const PRECISE_MS = 2_000;

/** When a step forward was noticed: what is at or before this began on the clock as it was. */
const BEFORE_FORWARD = `clock_timestamp() - step.noticed - step.by + interval '${PRECISE_MS} ms'`;

/** The tables with such times and their keys, in the order in which all transactions lock: by table, then by key. */
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
const ASKED_TO_CANCEL =
  "(select cancel_requested_at from jobs where jobs.job_id = attempts.job_id)";

/** Times of what goes on as if the clock had not been set, if what began at `since` began before that. */
const RUNS: [table: Table, column: string, condition: string, since: string][] = [
  ["jobs", "started_at", "status not in ('completed', 'failed')", "started_at"],
  ["attempts", "assigned_at", HELD, "assigned_at"],
  ["attempts", "started_at", HELD, "started_at"],
  ["attempts", "deadline_at", HELD, "started_at"],
  // A cancel may be asked for after the step of an attempt that began before.
  ["attempts", "cancel_by", "state = 'running' and cancel_by is not null", ASKED_TO_CANCEL],
];

/** As in the index billing_lines_to_export. */
const UNEXPORTED = "exported_at is null and cost_usd > 0";

/**
 * Times until which something waits, or since which: after a step back it would wait for as much longer. After a step
 * forward most of it is done too early, which does no harm; what "moves" would be given up too early, and moves on.
 * A column that SQL compares with the clock is in this list, or clock.test.ts says why not. What grows without
 * bound, such as all jobs that ever were, must not be: while a step is being recorded, whatever needs the clock waits.
 */
export const WAITS: [table: Table, column: string, condition: string, afterForward?: "moves"][] = [
  ["attempts", "queued_at", "state <> 'ended'"],
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
  /** Which rows. */
  when: string;
}

/**
 * What a step moves. Of an attempt that began just before a step back was noticed it is not known whether it began
 * before: it keeps its times, so its deadline is too late rather than too early, and its measured time too short.
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
  // Of a step forward, those from before it; of a step back, those that would be waited for too long.
  const waits = WAITS.filter(([, , , afterForward]) => !isForward || afterForward === "moves").map(
    ([table, column, condition]) => ({
      table,
      column,
      when: `${condition} and ${column} ${isForward ? `<= ${BEFORE_FORWARD}` : "> clock_timestamp()"}`,
    }),
  );
  return [...runs, ...waits];
}

/** Moves the times of one table. All its rows are locked by key before any changes. */
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
 * Records a step, negative where the clock was set back, and moves the times of jobs and attempts that go on with it:
 * they run and are billed for as long as if it had not been. Deployments are billed by clock_offset_s()
 * (lifetime.ts). The caller holds lockSteps, has read the clock under it, and has waited for transactions that began
 * before the step.
 *
 * @param gapS the step was not noticed for so long at most.
 * @param noticedS it was noticed so long ago: what began since then began after it.
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
