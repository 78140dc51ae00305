import { createHash } from "node:crypto";
import pg from "pg";
import type { Logger } from "../logger";
import { isStalePlan } from "./errors";

// Parse bigint and numeric as numbers: no count exceeds 2^53, and amounts of money are summed in
// SQL.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

/** A pool, or one connection inside a transaction. */
export interface Queryable {
  query<R extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<R>>;
}

export interface PoolOptions {
  connectionString: string;
  max: number;
  /** Longest time of a statement, in ms. The longest wait for a connection is half of this time. */
  timeoutMs: number;
}

export function createPool(options: PoolOptions, logger: Logger): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.max,
    application_name: "forge",
    idleTimeoutMillis: IDLE_MS,
    connectionTimeoutMillis: Math.ceil(options.timeoutMs / 2),
    query_timeout: options.timeoutMs,
    statement_timeout: options.timeoutMs,
    idle_in_transaction_session_timeout: 30_000,
    keepAlive: true,
  });
  // Without this listener, the error of a broken idle connection would end the process. The pool
  // itself replaces the connection.
  pool.on("error", (error) => logger.warn({ err: error.message }, "database connection lost"));
  // The pool handles errors of idle connections only. A connection can also break while the pool
  // passes it to a caller, or between two statements of a caller. Without this listener, such an
  // error would end the process.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/**
 * An idle connection is closed after this time, in ms. pg's default of 10 s is too short, because a
 * new connection must prepare all statements again.
 */
const IDLE_MS = 300_000;

const statementNames = new Map<string, string>();
/**
 * Number of schema changes seen. It is part of the names of prepared statements, so that
 * connections prepare them again after a change.
 */
let schema = 0;

/** Derives a statement's name from its text, so that each connection parses and plans it once. */
function nameOf(text: string): string {
  let name = statementNames.get(text);
  if (!name) {
    name = createHash("sha256").update(`${schema} ${text}`).digest("hex").slice(0, 32);
    statementNames.set(text, name);
  }
  return name;
}

async function prepared<R extends pg.QueryResultRow>(
  db: Queryable,
  text: string,
  values: unknown[],
): Promise<pg.QueryResult<R>> {
  for (;;) {
    const name = nameOf(text);
    try {
      return await db.query<R>({ name, text, values });
    } catch (error) {
      if (!isStalePlan(error)) throw error;
      if (statementNames.get(text) === name) {
        schema += 1;
        statementNames.clear();
      }
      // Within a transaction, the whole transaction has failed; transaction.ts retries it.
      if (!(db instanceof pg.Pool)) throw error;
    }
  }
}

/** All rows of one statement. */
export async function all<R extends pg.QueryResultRow>(
  db: Queryable,
  text: string,
  values: unknown[] = [],
): Promise<R[]> {
  return (await prepared<R>(db, text, values)).rows;
}

/** Like `all`, but not prepared: for statements with many variants. */
export async function allUnprepared<R extends pg.QueryResultRow>(
  db: Queryable,
  text: string,
  values: unknown[],
): Promise<R[]> {
  const { rows } = await db.query<R>({ text, values });
  return rows;
}

/** The first row of one statement, if there is one. */
export async function maybeOne<R extends pg.QueryResultRow>(
  db: Queryable,
  text: string,
  values: unknown[] = [],
): Promise<R | undefined> {
  return (await all<R>(db, text, values))[0];
}

/** Runs a statement and returns the number of affected rows. */
export async function execute(
  db: Queryable,
  text: string,
  values: unknown[] = [],
): Promise<number> {
  return (await prepared(db, text, values)).rowCount ?? 0;
}
