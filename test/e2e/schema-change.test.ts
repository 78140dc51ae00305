import pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { migrate } from "../../platform/postgres/migrate";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { addColumns, SteadyLoad } from "../support/steady-load";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge();
});

afterAll(async () => {
  try {
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

test("while another release adds columns, no request gets an internal error, and no job is lost", async () => {
  const load = new SteadyLoad(forge.stack);
  try {
    await load.more();
    expect(await addColumns(forge.ctx.pool, "added_first")).toBeGreaterThan(20);
    await load.more();
    // By now, the servers have prepared their statements again, for the changed tables. A second
    // change makes these statements stale again.
    await addColumns(forge.ctx.pool, "added_second");
    await load.more();
  } finally {
    await load.stop();
  }
  expect(load.unexpected).toEqual({});
}, 120_000);

test("a migration waits for a locked table, and lets other statements through meanwhile", async () => {
  await forge.ctx.pool.query("create database of_its_own");
  const url = new URL(forge.stack.databaseUrl);
  url.pathname = "/of_its_own";
  await migrate(url.href);
  const holder = new pg.Client({ connectionString: url.href });
  await holder.connect();
  try {
    // Undo one migration, so that `migrate` applies it again.
    const file = "0017_lease_tokens.sql";
    await holder.query(`delete from migrations where name = '${file}'`);
    await holder.query("alter table attempts drop column lease_token");
    await holder.query("begin; select from attempts limit 1");
    const migrating = migrate(url.href);
    const isWaiting = async (): Promise<boolean> => {
      const found = await all(
        forge.ctx.pool,
        `select from pg_stat_activity
         where wait_event_type = 'Lock' and datname = 'of_its_own' and state = 'active'`,
      );
      return found.length > 0;
    };
    await waitFor("the migration to wait", isWaiting);
    await waitFor("it to let others through", async () => !(await isWaiting()));
    await holder.query("commit");
    expect(await migrating).toEqual([file]);
  } finally {
    await holder.end();
  }
}, 60_000);
