import type pg from "pg";
import { mayRunAgain } from "./errors";
import type { Queryable } from "./pool";

const MAX_TRIES = 5;

export interface TransactionOptions {
  /** Sent together with BEGIN, in the same round trip. */
  begin?: string;
  /** For each statement. Default: the pool's. */
  timeoutMs?: number;
}

/** @param begun the results of BEGIN and of what was sent with it. */
type Work<T> = (db: Queryable, begun: pg.QueryResult[]) => Promise<T>;

/** Runs `work` in one transaction; after a deadlock, a serialization failure or a new schema, from the start again. */
export async function transaction<T>(
  pool: pg.Pool,
  work: Work<T>,
  options: TransactionOptions = {},
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await runOnce(pool, work, options);
    } catch (error) {
      if (!mayRunAgain(error) || tried === MAX_TRIES) throw error;
    }
  }
}

async function runOnce<T>(pool: pg.Pool, work: Work<T>, options: TransactionOptions): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // A connection that breaks between two statements says so here, and would end the process unheard.
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on("error", onError);
  try {
    // Of several statements pg gives a list of results.
    const begun = [await client.query(beginning(options))].flat();
    const result = await work(withTimeout(client, options.timeoutMs), begun);
    await client.query("commit");
    return result;
  } catch (error) {
    // A connection that can't even roll back is not given back to the pool.
    await client.query("rollback").catch((failure: Error) => {
      broken = failure;
    });
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

/** pg takes it, which its types don't say. */
interface TimedQuery extends pg.QueryConfig {
  query_timeout: number;
}

/** Postgres has been told with BEGIN; pg itself has a time-out, too. */
function withTimeout(client: pg.PoolClient, timeoutMs: number | undefined): Queryable {
  if (timeoutMs === undefined) return client;
  return {
    async query<R extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<R>> {
      const timed: TimedQuery = { ...query, query_timeout: timeoutMs };
      return await client.query<R>(timed);
    },
  };
}
