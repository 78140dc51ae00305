import { createHash } from "node:crypto";
import pg from "pg";
import type { Logger } from "../logger";
import { isStalePlan } from "./errors";

// bigint and numeric as numbers: no count here passes 2^53, and money is summed in SQL.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

/** A pool, or one connection inside a transaction. */
export interface Queryable {
  query<R extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<R>>;
}

export interface PoolOptions {
  connectionString: string;
  max: number;
  /** No statement and no wait for a connection may take longer, in ms. */
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
  // An idle connection that breaks is replaced at the next query; without a listener it would throw.
  pool.on("error", (error) => logger.warn({ err: error.message }, "database connection lost"));
  // The pool hears of idle ones only: one that breaks as it is taken, or between two statements, would throw, too.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** A new connection has everything to prepare anew: with pg's own 10 s, bursts make most of them new. */
const IDLE_MS = 300_000;

const statementNames = new Map<string, string>();
/** How often a change of the schema was met. Part of the names: then all connections prepare anew. */
let schema = 0;

/** A prepared statement is known by its text: parsed and planned once per connection. */
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
      // A transaction has failed with it, and begins anew (transaction.ts).
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

/** The same for a statement of many forms: none of them stays prepared on a connection. */
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

/** Runs a statement and tells how many rows it touched. */
export async function execute(
  db: Queryable,
  text: string,
  values: unknown[] = [],
): Promise<number> {
  return (await prepared(db, text, values)).rowCount ?? 0;
}
