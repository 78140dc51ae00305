import type pg from "pg";
import { createPool, execute, maybeOne } from "../../platform/postgres/pool";
import type { Database } from "./database";

/**
 * Counts the blocks of these tables and their indexes that Postgres reads for `work`. Unlike time,
 * this does not depend on other load. Nothing else may read the tables at the same time.
 *
 * @param work runs on the only connection of the given pool.
 */
export async function blocksRead(
  { ctx, databaseUrl }: Database,
  tables: string[],
  work: (pool: pg.Pool) => Promise<unknown>,
): Promise<number> {
  const options = { connectionString: databaseUrl, max: 1, timeoutMs: 20_000 };
  const pool = createPool(options, ctx.logger);
  try {
    const before = await blocksReadSoFar(pool, tables);
    await work(pool);
    return (await blocksReadSoFar(pool, tables)) - before;
  } finally {
    await pool.end();
  }
}

/**
 * The blocks of these tables and their indexes that Postgres has read so far. The number can be too
 * low while other connections are open, because a connection reports its reads with a delay.
 *
 * @param tables null for all tables.
 * @param pool has only one connection.
 */
export async function blocksReadSoFar(pool: pg.Pool, tables: string[] | null): Promise<number> {
  // A connection reports its reads to Postgres's statistics with a delay, so force the report.
  await execute(pool, "select pg_stat_force_next_flush()");
  const row = await maybeOne<{ blocks: number }>(
    pool,
    `select sum(coalesce(heap_blks_hit + heap_blks_read, 0) + coalesce(idx_blks_hit + idx_blks_read, 0))::float8 as blocks
     from pg_statio_user_tables where $1::text[] is null or relname = any($1)`,
    [tables],
  );
  return row?.blocks ?? 0;
}
