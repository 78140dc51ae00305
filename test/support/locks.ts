import pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

const waitsAs = (applicationName: string): string =>
  `datname = current_database() and application_name = '${applicationName}'
   and wait_event_type = 'Lock'`;

/** A statement of the server's that a lock holds up; others have databases on this Postgres, too. */
export const WAITS = waitsAs("forge");

/** How many statements wait for a lock: of the file's servers, or of who calls himself so. */
export const countWaiting = async ({ ctx }: Forge, applicationName = "forge"): Promise<number> =>
  (await all(ctx.pool, `select from pg_stat_activity where ${waitsAs(applicationName)}`)).length;

export const untilSomebodyWaits = (forge: Forge): Promise<unknown> =>
  waitFor("the server to wait for the lock", async () => (await countWaiting(forge)) > 0);

/** Holds a lock of the test's own while `work` runs. */
export async function holding<T>(
  { stack }: Forge,
  lock: string,
  values: unknown[],
  work: () => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: stack.databaseUrl });
  await client.connect();
  try {
    await client.query("begin");
    await client.query(lock, values);
    return await work();
  } finally {
    await client.end();
  }
}
