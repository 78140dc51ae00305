import pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { migrate } from "../../platform/postgres/migrate";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";

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

const LANES = 12;
const READS = ["jobs", "workers", "artifacts", "pipelines", "deployments", "billing/summary"];

test("while another release adds columns, no request gets an internal error, and no job is lost", async () => {
  const statuses = new Set<number>();
  const ended: string[] = [];
  let isOver = false;
  const lane = async (n: number): Promise<void> => {
    const worker = await forge.worker(`changing-${n}`);
    while (!isOver) {
      await forge.user.submit("audit", { dataset_uri: "s3://bucket/data.parquet" });
      const job = await worker.take();
      statuses.add((await worker.complete(job)).status);
      ended.push(job.job_id);
      const paths = [...READS, `jobs/${job.job_id}`, `jobs/${job.job_id}/attempts`];
      for (const path of paths) {
        statuses.add((await forge.user.call("GET", `/api/${path}`)).status);
      }
    }
  };
  const lanes = Promise.all(Array.from({ length: LANES }, (_, n) => lane(n)));
  const more = async (): Promise<void> => {
    const before = ended.length;
    await waitFor("jobs to end", async () => ended.length >= before + 3 * LANES);
  };
  try {
    await more();
    const tables = await all<{ name: string }>(
      forge.ctx.pool,
      `select table_name as name from information_schema.tables
       where table_schema = 'public' and table_type = 'BASE TABLE'`,
    );
    expect(tables.length).toBeGreaterThan(20);
    // Twice: statements prepared after the first change become stale again.
    for (const column of ["added_first", "added_second"]) {
      for (const { name } of tables) {
        await forge.ctx.pool.query(`alter table ${name} add column ${column} int`);
      }
      await more();
    }
  } finally {
    isOver = true;
    await lanes;
  }
  expect([...statuses].filter((status) => status > 299)).toEqual([]);
}, 120_000);

test("a migration waits for a locked table, and lets other statements through meanwhile", async () => {
  await forge.ctx.pool.query("create database of_its_own");
  const url = new URL(forge.stack.databaseUrl);
  url.pathname = "/of_its_own";
  await migrate(url.href);
  const holder = new pg.Client({ connectionString: url.href });
  await holder.connect();
  try {
    // Undo one migration, so that it is new.
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
