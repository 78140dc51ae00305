import pg from "pg";

/**
 * A pool for a test that drops its database at the end. `end()` does not wait until the connections
 * are closed, so dropping the database may terminate a connection. Without the error listener, this
 * would fail the test.
 */
export function createTestPool(connectionString: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, max });
  pool.on("error", () => undefined);
  return pool;
}
