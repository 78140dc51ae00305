/**
 * Three kinds of transactions lock the same rows: those that record a step of the clock, those of
 * workers' requests, and those of the scheduler. They must not deadlock.
 */

import { lockSteps } from "../../platform/postgres/clock";
import { execute, maybeOne } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { recordStep } from "../../services/clock/record-step";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_OFFER_S: "600" }, { own: ["server"] });
}, 120_000);

afterAll(async () => {
  await forge?.stop();
});

const WORKERS = 60;
const STEP_S = 6;
const FOR_MS = 10_000;

async function deadlocks(): Promise<number> {
  const { pool } = forge.ctx;
  const found = await maybeOne<{ n: number }>(
    pool,
    "select deadlocks as n from pg_stat_database where datname = current_database()",
  );
  return found?.n ?? 0;
}

test("recording steps while many workers send heartbeats, poll and finish jobs causes no deadlock and no 5xx", async () => {
  const { pool } = forge.ctx;
  const before = await deadlocks();
  const until = performance.now() + FOR_MS;
  const failures: unknown[] = [];
  let completed = 0;
  const failed = (error: unknown): void => {
    failures.push(String(error));
  };
  const whileBusy = async (work: () => Promise<unknown>): Promise<void> => {
    while (performance.now() < until) await work().catch(failed);
  };
  const workers = await Promise.all(
    Array.from({ length: WORKERS }, (_, n) => forge.worker(`b${n}`)),
  );
  await Promise.all([
    ...workers.map((worker) => whileBusy(() => worker.heartbeat())),
    ...workers.slice(0, WORKERS / 4).map((worker) =>
      whileBusy(async () => {
        await forge.user.submit("audit", AUDIT);
        const job = await worker.next(2);
        const answer = job && (await worker.complete(job));
        if (answer && answer.status !== 200) failed(JSON.stringify(answer));
        if (answer) completed += 1;
      }),
    ),
    whileBusy(async () => {
      // Record a step back and a step forward, so that the recorded steps add up to 0 in the end.
      for (const byS of [-STEP_S, STEP_S]) {
        await transaction(pool, async (db) => {
          await lockSteps(db);
          await recordStep(db, byS, 1);
        });
      }
    }),
  ]);
  // Postgres's statistics lag by up to one second.
  await execute(pool, "select pg_sleep(1.5)");
  expect({ failures, deadlocks: (await deadlocks()) - before }).toEqual({
    failures: [],
    deadlocks: 0,
  });
  expect(completed).toBeGreaterThan(0);
}, 120_000);
