import type pg from "pg";
import { isRetryable, isTimeout } from "./errors";
import type { Queryable } from "./pool";

const MAX_TRIES = 5;

export interface TransactionOptions {
  /** Statements that are sent together with BEGIN, in the same round trip. */
  begin?: string;
  /** Time-out of each statement. Default: the pool's. */
  timeoutMs?: number;
}

/** @param begun the results of BEGIN and of the statements sent with it. */
type Work<T> = (db: Queryable, begun: pg.QueryResult[]) => Promise<T>;

/**
 * Runs `work` in a transaction. After a deadlock, a serialization failure or a schema change, runs
 * `work` again in a new transaction.
 */
export async function transaction<T>(
  pool: pg.Pool,
  work: Work<T>,
  options: TransactionOptions = {},
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await runOnce(pool, work, options);
    } catch (error) {
      if (!isRetryable(error) || tried === MAX_TRIES) throw error;
    }
  }
}

/** Runs `work` on one snapshot of the database. `work` may only read. */
export const readSnapshot = <T>(pool: pg.Pool, work: Work<T>): Promise<T> =>
  transaction(pool, work, { begin: "set transaction isolation level repeatable read read only" });

async function runOnce<T>(pool: pg.Pool, work: Work<T>, options: TransactionOptions): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // Without this listener, a connection that breaks between two statements would end the process.
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on("error", onError);
  try {
    // For several statements pg returns a list of results.
    const begun = [await client.query(beginning(options))].flat();
    const result = await work(withTimeout(client, options.timeoutMs), begun);
    await client.query("commit");
    return result;
  } catch (error) {
    // If the rollback fails, destroy the connection instead of returning it to the pool. After a
    // time-out, destroy it without a rollback, which could time out again.
    if (isTimeout(error)) broken = error;
    else {
      await client.query("rollback").catch((failure: Error) => {
        broken = failure;
      });
    }
    throw error;
  } finally {
    client.off("error", onError);
    client.release(broken);
  }
}

const beginning = ({ begin, timeoutMs }: TransactionOptions): string =>
  ["begin", begin, timeoutMs && `set local statement_timeout = ${timeoutMs}`]
    .filter(Boolean)
    .join("; ");

/** pg supports this option, but its types lack it. */
interface TimedQuery extends pg.QueryConfig {
  query_timeout: number;
}

/**
 * Adds the time-out on the client's side to each query. `beginning` has set the time-out on the
 * server's side.
 */
function withTimeout(client: pg.PoolClient, timeoutMs: number | undefined): Queryable {
  if (timeoutMs === undefined) return client;
  return {
    async query<R extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<R>> {
      const timed: TimedQuery = { ...query, query_timeout: timeoutMs };
      return await client.query<R>(timed);
    },
  };
}
