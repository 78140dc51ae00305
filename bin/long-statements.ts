import type pg from "pg";
import { createPool } from "../platform/postgres/pool";
import type { Context } from "../services/context";

/** Timeout of a statement. Commands read all rows, which takes longer than a request may take. */
const TIMEOUT_MS = 3_600_000;

export type WithContext = (work: (ctx: Context) => Promise<void>) => Promise<void>;

/** Runs the work of a command with a separate connection that allows long statements. */
export function withLongStatements(
  withContext: WithContext,
  work: (pool: pg.Pool) => Promise<void>,
): Promise<void> {
  return withContext(async ({ config, logger }) => {
    const pool = createPool(
      { connectionString: config.database.url, max: 1, timeoutMs: TIMEOUT_MS },
      logger,
    );
    try {
      await work(pool);
    } finally {
      await pool.end();
    }
  });
}
