import pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

const waitsAs = (applicationName: string): string =>
  `datname = current_database() and application_name = '${applicationName}'
   and wait_event_type = 'Lock'`;

/**
 * A condition on pg_stat_activity: a statement of a forge-server waits for a lock. The condition
 * names the current database, because other test files use other databases of the same Postgres.
 */
export const WAITS = waitsAs("forge");

/**
 * The number of statements that wait for a lock, on connections with this application name.
 *
 * @param part counts only statements that contain this text.
 */
export const countWaiting = async (
  { ctx }: Pick<Forge, "ctx">,
  applicationName = "forge",
  part = "",
): Promise<number> => {
  const statement = `select from pg_stat_activity
    where ${waitsAs(applicationName)} and strpos(query, $1) > 0`;
  return (await all(ctx.pool, statement, [part])).length;
};

/** Probes often, because some statements wait for a lock for a third of a second only. */
export const untilServerWaits = (forge: Pick<Forge, "ctx">, part = ""): Promise<unknown> =>
  waitFor(
    "the server to wait for the lock",
    async () => (await countWaiting(forge, "forge", part)) > 0,
    { everyMs: 20 },
  );

/** Holds a lock in a separate transaction while `work` runs. */
export async function withLock<T>(
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
    // Roll back to release the lock at once. If only the connection ended, Postgres would release
    // the lock a moment later.
    await client.query("rollback").catch(() => undefined);
    await client.end();
  }
}
