import { uptime } from "node:os";
import { Sweeper } from "../../agent-bridge/sweeper";
import { waitFor } from "../../dev/stack/wait";
import { ClockWatch } from "../../infra/clock-watch";
import type { Context } from "../../infra/context";
import { reserveDataset } from "../../infra/database/dataset-uploads";
import { claimKey } from "../../infra/database/idempotency";
import { all, execute } from "../../infra/database/pool";
import { ensureUser } from "../../infra/database/users";
import { type Database, openDatabase } from "../support/database";

/** One turn of what deletes by age, while it can't tell the time, and while a part of it fails. */
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

/** One of each kind of what is deleted by its age, a year old. */
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

const countFailures = async ({ metrics }: Context): Promise<number> =>
  (await metrics.loopFailures.get()).values.reduce((sum, { value }) => sum + value, 0);

const countTurns = async (ctx: Context): Promise<number> =>
  (await countFailures(ctx)) + (await ctx.metrics.loopSuccess.get()).values.length;

/** How many turns of one failed. */
async function sweepOnce(ctx: Context): Promise<number> {
  const before = await countFailures(ctx);
  const sweeper = new Sweeper(ctx);
  sweeper.start();
  await waitFor("its first turn", async () => (await countTurns(ctx)) > before);
  await sweeper.stop();
  return (await countFailures(ctx)) - before;
}

test("while it can't be told whether the clock was set, nothing is deleted for its age", async () => {
  const { ctx } = forge;
  // Between any two of its looks at the time it seems to have stood still for long.
  let pausedMs = 0;
  const doubtful = new ClockWatch(ctx.pool, ctx.logger, () => {
    pausedMs += 10_000;
    return uptime() * 1_000 + pausedMs;
  });
  expect(await sweepOnce({ ...ctx, clockWatch: doubtful })).toBe(1);
  expect((await listLeft()).sort()).toEqual(["event", "key", "registered", "unfinished"]);
  // A bill is written all the same.
  expect(await doubtful.transaction(async () => "written")).toBe("written");
  expect(await sweepOnce(ctx)).toBe(0);
  expect(await listLeft()).toEqual([]);
});

test.each(["idempotency", "change_events", "job_metrics"])(
  "where old %s can't be deleted, all else is, and the turn counts as failed",
  async (table) => {
    const { ctx } = forge;
    await execute(ctx.pool, `alter table ${table} rename to elsewhere`);
    expect(await sweepOnce(ctx)).toBe(1);
    await execute(ctx.pool, `alter table elsewhere rename to ${table}`);
    const kept: Record<string, string> = { idempotency: "key", change_events: "event" };
    expect(await listLeft()).toEqual([kept[table]].filter((what) => what !== undefined));
  },
);
