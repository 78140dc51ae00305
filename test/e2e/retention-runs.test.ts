/**
 * While it is unknown whether the clock was set, nothing is deleted by age. If the clean-up of one
 * table fails, the other tables are still cleaned up.
 */

import { uptime } from "node:os";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { claimKey } from "../../services/accounts/idempotency-keys";
import { ensureUser } from "../../services/accounts/users";
import { reserveDataset } from "../../services/artifacts/dataset-uploads";
import { Sweeper } from "../../services/artifacts/file-sweeper";
import { ClockWatch } from "../../services/clock/clock-watch";
import type { Context } from "../../services/context";
import { Retention } from "../../services/retention";
import { type Database, openDatabase } from "../support/database";

const YEAR = "interval '1 year'";

let forge: Database;

beforeEach(async () => {
  forge = await openDatabase();
  await ensureUser(forge.ctx.pool, "ann", "ann");
  await makeOldThings();
});

afterEach(async () => {
  await forge?.stop();
});

/** Inserts a year-old row of each kind that is deleted by age. */
async function makeOldThings(): Promise<void> {
  const { pool } = forge.ctx;
  await claimKey(pool, "ann", "key", "fingerprint");
  const dataset = { userId: "ann", uri: "forge://x", createdBy: "ann" };
  await reserveDataset(pool, { ...dataset, storageId: "unfinished" });
  await reserveDataset(pool, { ...dataset, storageId: "registered" });
  for (const statement of [
    "update artifacts set registered_at = now(), size_bytes = 1, manifest = '{}' where artifact_id = 'registered'",
    "insert into retention_rules (user_id, kind, keep_days) values ('ann', 'raw_dataset', 10)",
    "insert into change_events (user_id, kind, subject, status) values ('ann', 'worker', 'w', 'idle')",
    `update artifacts set created_at = now() - ${YEAR}`,
    `update idempotency set created_at = now() - ${YEAR}`,
    `update change_events set created_at = now() - ${YEAR}`,
  ]) {
    await execute(pool, statement);
  }
}

const listLeft = async (): Promise<string[]> =>
  (
    await all<{ what: string }>(
      forge.ctx.pool,
      `select 'key' as what from idempotency
       union all select 'event' from change_events
       union all select artifact_id from artifacts where deleted_at is null`,
    )
  ).map(({ what }) => what);

interface Turns {
  failures: number;
  lastSuccess: number;
}

async function readTurns({ metrics }: Context, loop: string): Promise<Turns> {
  const [failures, lastSuccess] = await Promise.all(
    [metrics.loopFailures, metrics.loopSuccess].map(async (metric) => {
      const { values } = await metric.get();
      return values.find(({ labels }) => labels.loop === loop)?.value ?? 0;
    }),
  );
  return { failures: failures ?? 0, lastSuccess: lastSuccess ?? 0 };
}

const PARTS = { sweep: Sweeper, retention: Retention };

/** Runs each loop in PARTS once. @returns the names of the loops whose run failed. */
async function turn(ctx: Context): Promise<string[]> {
  const failed: string[] = [];
  for (const [loop, Kind] of Object.entries(PARTS)) {
    const before = await readTurns(ctx, loop);
    const part = new Kind(ctx);
    part.start();
    const after = await waitFor(`a turn of ${loop}`, async () => {
      const now = await readTurns(ctx, loop);
      return (now.failures > before.failures || now.lastSuccess > before.lastSuccess) && now;
    });
    await part.stop();
    if (after.failures > before.failures) failed.push(loop);
  }
  return failed;
}

test("while it is unknown whether the clock was set, nothing is deleted by age", async () => {
  const { ctx } = forge;
  // Advance the process's monotonic time by 10 s at each reading, as if the process had paused. The
  // process can then never tell whether the database's clock was set.
  let pausedMs = 0;
  const doubtful = new ClockWatch(ctx.pool, ctx.logger, () => {
    pausedMs += 10_000;
    return uptime() * 1_000 + pausedMs;
  });
  expect(await turn({ ...ctx, clockWatch: doubtful })).toEqual(["sweep", "retention"]);
  expect((await listLeft()).sort()).toEqual(["event", "key", "registered", "unfinished"]);
  // A transaction without `requireKnownClock`, such as one that writes a bill, still commits.
  expect(await doubtful.transaction(async () => "written")).toBe("written");
  expect(await turn(ctx)).toEqual([]);
  expect(await listLeft()).toEqual([]);
});

test.each(["idempotency", "change_events", "job_metrics"])(
  "if old %s can't be deleted, everything else is, and the run counts as failed",
  async (table) => {
    const { ctx } = forge;
    await execute(ctx.pool, `alter table ${table} rename to elsewhere`);
    expect(await turn(ctx)).toEqual(["retention"]);
    await execute(ctx.pool, `alter table elsewhere rename to ${table}`);
    const kept: Record<string, string> = { idempotency: "key", change_events: "event" };
    expect(await listLeft()).toEqual([kept[table]].filter((what) => what !== undefined));
  },
);
