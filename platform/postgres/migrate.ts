import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { isLockTimeout, isRetryable } from "./errors";

const MIGRATIONS_DIR = join(__dirname, "migrations");
const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/;

/** Advisory lock id (any fixed number): servers that start together migrate one after the other. */
const LOCK = 7_263_001;

/**
 * Longest wait for a table lock. While the migration waits, new statements on the same table must
 * wait too. So after this time, the migration rolls back, and tries again after PAUSE_MS.
 */
const LOCK_TIMEOUT_MS = 2_000;
const PAUSE_MS = 1_000;
const MAX_TRIES = 20;

/**
 * Applies the missing numbered SQL files, each in its own transaction. Uses its own connection,
 * because a migration may take longer than the pool's statement time-out.
 *
 * @returns the names of the files applied now.
 * @throws Error if an applied file has changed, or if this role may not apply a missing migration.
 */
export async function migrate(connectionString: string): Promise<string[]> {
  const files = (await readdir(MIGRATIONS_DIR)).filter((file) => FILE_NAME.test(file)).sort();
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 });
  client.on("error", () => undefined); // the running query reports the error
  try {
    await client.connect();
    await client.query("select pg_advisory_lock($1)", [LOCK]);
    const applied = await listApplied(client);
    const now: string[] = [];
    for (const file of files) {
      const sql = await readFile(join(MIGRATIONS_DIR, file), "utf8");
      const digest = createHash("sha256").update(sql).digest("hex");
      const known = applied.get(file);
      if (known === digest) continue;
      if (known !== undefined) throw new Error(`migration ${file} changed after it was applied`);
      await applyWithRetries(client, file, sql, digest);
      now.push(file);
    }
    return now;
  } catch (error) {
    if (!isForbidden(error)) throw error;
    throw new Error(
      `the database's schema is not current, and this role may not change it (${error.message}): ` +
        "run `forge-server migrate` as the owner of the schema",
    );
  } finally {
    await client.end();
  }
}

/**
 * Returns the digests of the applied files, by file name. Checks whether the table `migrations`
 * exists before creating it: `create table if not exists` needs the privilege to create tables even
 * if the table exists, and the server's role lacks this privilege.
 */
async function listApplied(client: pg.Client): Promise<Map<string, string>> {
  const found = await client.query("select from pg_class where oid = to_regclass('migrations')");
  if (found.rowCount === 0) {
    await client.query(`create table if not exists migrations (
      name text primary key, digest text not null, applied_at timestamptz not null default now())`);
  }
  const { rows } = await client.query<{ name: string; digest: string }>(
    "select name, digest from migrations",
  );
  return new Map(rows.map((row) => [row.name, row.digest]));
}

/** Postgres' insufficient_privilege. */
const isForbidden = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && error.code === "42501";

async function applyWithRetries(
  client: pg.Client,
  file: string,
  sql: string,
  digest: string,
): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      await apply(client, file, sql, digest);
      return;
    } catch (error) {
      // Retry after a deadlock too. It happens if a transaction has locked one table of the
      // migration, and waits for a second table that the migration has locked.
      if (!isLockTimeout(error) && !isRetryable(error)) throw error;
      if (tried === MAX_TRIES) {
        throw new Error(`migration ${file}: other transactions lock its tables (${String(error)})`);
      }
    }
    await sleep(PAUSE_MS);
  }
}

async function apply(client: pg.Client, file: string, sql: string, digest: string): Promise<void> {
  await client.query(`begin; set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
  try {
    await client.query(sql);
    await client.query("insert into migrations (name, digest) values ($1, $2)", [file, digest]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}
