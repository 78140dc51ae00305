import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { ensureStackKeys } from "../../dev/stack/secrets";
import { waitFor } from "../../dev/stack/wait";
import { createLogger } from "../../platform/logger";
import { migrate } from "../../platform/postgres/migrate";
import { all, createPool, execute } from "../../platform/postgres/pool";
import { FIRST_NEW_MIGRATION, lastRelease } from "../support/last-release";
import { runJob, startServersOnly } from "../support/server-process";
import { addColumns, SteadyLoad } from "../support/steady-load";

test("a server of the last release under load gives no internal error while today's migrations run, and today's server takes over", async () => {
  const last = lastRelease();
  const { stack, end } = await startServersOnly(["server"]);
  const { databaseUrl } = stack;
  const options = { connectionString: databaseUrl, max: 2, timeoutMs: 30_000 };
  const pool = createPool(options, createLogger("silent"));
  try {
    // Create the tables with the last release's migrations.
    await pool.query("drop schema public cascade; create schema public");
    const program = join(last.dist, "bin", "forge-server.js");
    const env = { ...process.env, FORGE_DATABASE_URL: databaseUrl };
    execFileSync(process.execPath, [program, "migrate"], { env });
    await ensureStackKeys(databaseUrl, stack.keys);
    const today = stack.release;
    stack.release = last.dist;
    await stack.startServer();

    const load = new SteadyLoad(stack);
    try {
      await load.more();
      expect(await migrate(databaseUrl)).toContain(FIRST_NEW_MIGRATION);
      await load.more();
      expect(await addColumns(pool, "added_later")).toBeGreaterThan(20);
      await load.more();
    } finally {
      await load.stop();
    }
    expect(load.unexpected).toEqual({});

    await stack.server?.stop();
    stack.release = today;
    await stack.startServer();
    // The load's workers have stopped. But Forge may still assign a job to a worker for some
    // seconds after the worker's last result. Make these workers unavailable, so that the worker of
    // `runJob` gets the job.
    await execute(pool, "update workers set available_until = null");
    expect(await runJob(stack, "of-today")).toBe("completed");
    const open = "select job_id, status from jobs where status not in ('completed', 'failed')";
    await waitFor("all jobs to end", async () => (await all(pool, open)).length === 0);
  } finally {
    await pool.end();
    await end();
    last.remove();
  }
}, 300_000);
