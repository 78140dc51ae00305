import pg from "pg";

const quoted = (names: string[]): string => names.map((name) => `"${name}"`).join(", ");

async function connected<T>(url: string, work: (db: pg.Client) => Promise<T>): Promise<T> {
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  try {
    return await work(db);
  } finally {
    await db.end();
  }
}

async function namesOf(db: pg.Client, sql: string, values: string[] = []): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(sql, values);
  return rows.map(({ name }) => name);
}

const TABLES = `select table_name as name from information_schema.tables
  where table_schema = 'public' and table_type = 'BASE TABLE' and table_name <> 'migrations'`;
const COLUMNS = `select column_name as name from information_schema.columns
  where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'`;

/**
 * Copies every table, as a backup of the database does.
 *
 * @returns a function that restores the copies. Call it while no server runs.
 */
export async function backUp(databaseUrl: string): Promise<() => Promise<void>> {
  const tables = await connected(databaseUrl, async (db) => {
    const names = await namesOf(db, TABLES);
    await db.query("drop schema if exists saved cascade; create schema saved");
    for (const name of names) {
      await db.query(`create table saved.${name} as table public.${name}`);
    }
    return names;
  });
  return async () => {
    await connected(databaseUrl, async (db) => {
      await db.query("begin; set local session_replication_role = replica");
      await db.query(`truncate ${quoted(tables)}`);
      for (const name of tables) {
        const columns = quoted(await namesOf(db, COLUMNS, [name]));
        await db.query(
          `insert into public.${name} (${columns}) overriding system value
           select ${columns} from saved.${name}`,
        );
      }
      await db.query("commit");
    });
  };
}
