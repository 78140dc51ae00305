/**
 * Clean-up finds data by its true age, even if the database's clock was set after the data was
 * written. All times are in seconds.
 */

import fc from "fast-check";
import { isOlder } from "../../platform/postgres/clock";
import { all, type Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { deleteOldIdempotencyKeys } from "../../services/accounts/idempotency-keys";
import { deleteOldChangeEvents } from "../../services/accounts/tenant-events";
import { markExpiredDeleted } from "../../services/artifacts/artifact-deletion";
import { listAbandonedUploads } from "../../services/artifacts/dataset-uploads";
import { deleteOldMetrics } from "../../services/jobs/job-metrics";
import { type Database, openDatabase } from "../support/database";

const DAY = 86_400;
const AGE = 10 * DAY;
/**
 * The maximum error of an age. A clock step is recorded at most this long after the clock was set.
 */
const PRECISE = 15;

let forge: Database;

beforeAll(async () => {
  forge = await openDatabase();
});

afterAll(async () => {
  await forge?.stop();
});

/** A period in which data is written, and the clock step at its end. */
interface Segment {
  /** The duration of the period, in seconds. */
  lasts: number;
  /** The times at which data is written, as fractions (0 to 1) of the duration `lasts`. */
  writes: number[];
  /** The size of the clock step, in seconds. Negative: the clock is set back. */
  by: number;
  /** The step is recorded this many seconds after the clock was set. */
  recordedAfter: number;
}

const segments = (by: fc.Arbitrary<number>): fc.Arbitrary<Segment[]> =>
  fc.array(
    fc.record({
      lasts: fc.oneof(fc.integer({ min: 20, max: 60 }), fc.integer({ min: DAY, max: 30 * DAY })),
      writes: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 5 }),
      by,
      recordedAfter: fc.integer({ min: 0, max: 14 }),
    }),
    { minLength: 1, maxLength: 8 },
  );

const forward = fc.oneof(fc.integer({ min: 6, max: 60 }), fc.integer({ min: DAY, max: 100 * DAY }));
const either = fc.oneof(
  forward,
  forward.map((by) => -by),
);

interface History {
  steps: { seen: number; by: number }[];
  /**
   * For each write: the time that the clock showed, and the data's real age at the end of the
   * history.
   */
  written: { at: number; age: number }[];
}

/**
 * Converts segments to a history: the steps of the clock, and the writes. `seen` is what the clock
 * showed when a step was recorded, and `at` what it showed at a write. Both are relative to what it
 * shows at the history's end. The history ends `PRECISE` seconds after the last step, and nothing
 * is written in those seconds.
 */
function historyOf(life: Segment[]): History {
  let [passed, ahead] = [0, 0];
  const steps: History["steps"] = [];
  const written: { at: number; passed: number }[] = [];
  for (const { lasts, writes, by, recordedAfter } of life) {
    for (const share of [...writes, 0, 1]) {
      const when = passed + share * lasts;
      written.push({ at: when + ahead, passed: when });
    }
    passed += lasts;
    ahead += by;
    steps.push({ seen: passed + ahead + recordedAfter, by });
  }
  const now = passed + PRECISE;
  return {
    steps: steps.map(({ seen, by }) => ({ seen: seen - now - ahead, by })),
    written: written.map(({ at, passed: when }) => ({ at: at - now - ahead, age: now - when })),
  };
}

/** Returns for each write whether the SQL of retention finds its data older than AGE. */
async function findOlder({ steps, written }: History): Promise<boolean[]> {
  return await transaction(forge.ctx.pool, async (db) => {
    await all(db, "delete from clock_steps");
    await all(
      db,
      `insert into clock_steps (seen_at, by_s)
       select now() + make_interval(secs => (step->>'seen')::float8), (step->>'by')::float8
       from json_array_elements($1) with ordinality as s (step, n) order by n`,
      [JSON.stringify(steps)],
    );
    const rows = await all<{ is_older: boolean }>(
      db,
      `select ${isOlder("at", "make_interval(secs => $2)")} as is_older
       from unnest($1::float8[]) with ordinality as w (s, n), lateral (select now() + make_interval(secs => s) as at) t
       order by n`,
      [written.map(({ at }) => at), AGE],
    );
    return rows.map(({ is_older: isOld }) => isOld);
  });
}

test("if clocks are set forward and back, only old data is found; and eventually all of it", async () => {
  await fc.assert(
    fc.asyncProperty(segments(either), async (life) => {
      const history = historyOf(life);
      const older = await findOlder(history);
      const forwards = history.steps.reduce((sum, { by }) => sum + Math.max(0, by), 0);
      for (const [n, { at, age }] of history.written.entries()) {
        if (age <= AGE - PRECISE) expect([age, older[n]]).toEqual([age, false]);
        if (at < -AGE - forwards) expect([at, older[n]]).toEqual([at, true]);
      }
    }),
    { numRuns: 200 },
  );
});

test("if clocks are only set forward, all old data is found", async () => {
  await fc.assert(
    fc.asyncProperty(segments(forward), async (life) => {
      const history = historyOf(life);
      const older = await findOlder(history);
      for (const [n, { age }] of history.written.entries()) {
        if (Math.abs(age - AGE) > PRECISE) expect([age, older[n]]).toEqual([age, age > AGE]);
      }
    }),
    { numRuns: 200 },
  );
});

const RULE = { user_id: "u", kind: "raw_dataset", keep_days: 10 };

/**
 * Returns the query plans of the statements in `work`. Forces the use of indexes, because Postgres
 * would not use them for empty tables.
 */
async function explain(work: (db: Queryable) => Promise<unknown>): Promise<string[]> {
  const lines: string[] = [];
  await transaction(forge.ctx.pool, async (db) => {
    await all(db, "set local enable_seqscan = off");
    await all(db, "set local enable_bitmapscan = off");
    await work({
      async query({ text, values = [] }) {
        const { rows } = await db.query({ text: `explain ${text}`, values });
        lines.push(...rows.map((row) => String(row["QUERY PLAN"])));
        return { rows: [], rowCount: 0, command: "", oid: 0, fields: [] };
      },
    });
  });
  return lines;
}

test.each<[string, string, (db: Queryable) => Promise<unknown>]>([
  ["idempotency keys", "idempotency_by_age", (db) => deleteOldIdempotencyKeys(db, 1)],
  ["events", "change_events_by_age", (db) => deleteOldChangeEvents(db, 1)],
  ["metrics of jobs", "job_metrics_by_age", (db) => deleteOldMetrics(db, 1)],
  ["unfinished uploads", "artifacts_unregistered", (db) => listAbandonedUploads(db, undefined, 1)],
  [
    "artifacts under a rule",
    "artifacts_by_kind",
    (db) => markExpiredDeleted(db, RULE, undefined, 1),
  ],
])("old %s are found by their index, whatever steps are recorded", async (_, index, work) => {
  const plan = await explain(work);
  const at = plan.findIndex((line) => line.includes(`using ${index} `));
  expect(plan[at + 1]).toMatch(/Index Cond: .*\b(created_at|at) < .*InitPlan/);
});
