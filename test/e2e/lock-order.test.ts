/**
 * Statements that lock several rows must lock them in key order, as `recordStep`
 * (services/clock/record-step.ts) does. Otherwise, such a statement could deadlock with
 * `recordStep`.
 */

import { all, execute, type Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { releaseLines } from "../../services/billing/billing-exports";
import { recordPlacementReports } from "../../services/deployments/placement-reports";
import {
  endOverdueStops,
  endPlacementsOfLostWorker,
  stopPlacements,
} from "../../services/deployments/placements";
import { type JobEntry, removeJobEntries } from "../../services/jobs/outbox-entries";
import { type Database, openDatabase } from "../support/database";
import { untilServerWaits } from "../support/locks";

let database: Database;

/** Inserts rows in reverse key order, so that a scan of the table finds `b` before `a`. */
const ROWS = [
  "insert into outbox (job_id, attempt, due_at) values ('b', 1, now()), ('a', 1, now())",
  `insert into billing_lines (line_id, user_id, month, cost_usd)
   values ('b', 'ann', '2026-11-01', 1), ('a', 'ann', '2026-11-01', 1)`,
  `insert into deployments (deployment_id, user_id, job_id, min_replicas, max_replicas, active_at)
   select id, 'ann', 'job of ' || id, 1, 2, now() from unnest('{b,a,serving}'::text[]) id`,
  `insert into placements (deployment_id, placement, job_id, worker_id, state, serving_at, stopping_at)
   values ('b', 1, 'b1', 'worker', 'stopping', now(), now() - interval '1 hour'),
          ('a', 1, 'a1', 'worker', 'stopping', now(), now() - interval '1 hour'),
          ('serving', 2, 's2', 'worker 2', 'serving', now(), null),
          ('serving', 1, 's1', 'worker 1', 'serving', now(), null)`,
];

beforeAll(async () => {
  database = await openDatabase();
  await transaction(database.ctx.pool, async (db) => {
    // Turn foreign keys off, because the rows have no jobs and artifacts.
    await execute(db, "set local session_replication_role = replica");
    for (const rows of ROWS) await execute(db, rows);
  });
});

afterAll(async () => {
  await database?.stop();
});

class Undone extends Error {}

/** Runs `work` in a transaction that is rolled back. */
async function undone(work: (db: Queryable) => Promise<unknown>): Promise<void> {
  const trying = transaction(database.ctx.pool, async (db) => {
    await work(db);
    throw new Undone();
  });
  await expect(trying).rejects.toThrow(Undone);
}

const ENTRY: JobEntry = {
  job_id: "",
  user_id: "ann",
  job_type: "audit",
  max_attempts: 1,
  request_id: "r",
  topic: "outcome",
  attempt: 1,
  tries: 0,
  superseded: false,
  startIsPending: false,
  jobHasFailed: false,
};

interface Case {
  /**
   * A table and the column that the statement `select from <rows> = $1 for update` compares with
   * `$1`, for example "outbox where job_id". The statement locks one of the rows that `work` also
   * locks.
   */
  rows: string;
  /**
   * Two values for `$1`. The first value selects the row that `work` must lock first. The second
   * value selects the other row.
   */
  keys: [string | number, string | number];
  work: (db: Queryable) => Promise<unknown>;
}

const PLACEMENTS = {
  rows: "placements where placement = 1 and deployment_id",
  keys: ["a", "b"],
} satisfies Omit<Case, "work">;

const CASES: Record<string, Case> = {
  "delivered outbox entries": {
    rows: "outbox where job_id",
    keys: ["a", "b"],
    work: (db) =>
      removeJobEntries(
        db,
        ["b", "a"].map((job_id) => ({ ...ENTRY, job_id })),
      ),
  },
  "lines that were not sent": {
    rows: "billing_lines where line_id",
    keys: ["a", "b"],
    work: (db) =>
      releaseLines(
        db,
        ["b", "a"].map((line_id) => ({ line_id, tries: 0, in_doubt_s: null })),
      ),
  },
  "placements of a lost worker": {
    ...PLACEMENTS,
    work: (db) => endPlacementsOfLostWorker(db, "worker"),
  },
  "placements that a worker reports": {
    ...PLACEMENTS,
    work: (db) =>
      recordPlacementReports(
        db,
        "worker",
        ["b", "a"].map((deploymentId) => ({ deploymentId, isListed: false, isUnhealthy: false })),
        database.ctx.config.deployments,
      ),
  },
  "placements whose stop is overdue": {
    ...PLACEMENTS,
    work: (db) => endOverdueStops(db, 1),
  },
  "placements of a stopped deployment": {
    rows: "placements where deployment_id = 'serving' and placement",
    keys: [1, 2],
    work: (db) => stopPlacements(db, "serving"),
  },
};

test.each(Object.entries(CASES))("%s", async (_, { rows, keys: [first, second], work }) => {
  const lock = (db: Queryable, key: string | number, orFail = ""): Promise<unknown> =>
    all(db, `select from ${rows} = $1 for update ${orFail}`, [key]);
  let working: Promise<void> | undefined;
  await undone(async (db) => {
    await lock(db, first);
    working = undone(work);
    await untilServerWaits(database);
    await lock(db, second, "nowait");
  });
  await working;
});
