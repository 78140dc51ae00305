import type pg from "pg";
import { createPool } from "../platform/postgres/pool";
import type { Context } from "../services/context";

/** Over all rows there are: longer than a request may take. */
const TIMEOUT_MS = 3_600_000;

export type WithContext = (work: (ctx: Context) => Promise<void>) => Promise<void>;

/** Work of a command whose statements may take their time, on a connection of its own. */
export function withPatientPool(
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
