import pg from "pg";

/**
 * A pool for a test that drops its database at the end. `end()` does not wait until the connections are closed, so the
 * drop may terminate one, and without the listener this would fail the test.
 */
export function createTestPool(connectionString: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, max });
  pool.on("error", () => undefined);
  return pool;
}
