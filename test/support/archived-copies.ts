import pg from "pg";

/** How many copies one statement inserts. */
const STEP = 500_000;

interface Copies {
  count: number;
  tenants: string[];
  /**
   * True: inserts the copies into the archive tables. False: inserts them into `jobs` and
   * `attempts` with `swept_at` set, so that the archiver may move them.
   */
  archived: boolean;
}

/**
 * Inserts copies of a completed job and its attempt. The copies are three seconds apart, and the
 * newest one ended an hour ago. A copy that is not archived also gets a billing line, because the
 * archiver skips a job without one. The job's other rows are not copied.
 *
 * @param url connection string of a superuser.
 */
export async function copyJob(url: string, jobId: string, copies: Copies): Promise<void> {
  const { archived, count, tenants } = copies;
  const tables = archived ? ["jobs", "attempts"] : ["jobs", "attempts", "billing_lines"];
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // `replica` disables triggers and the checks of foreign keys.
    await client.query("set session_replication_role = replica; set synchronous_commit = off");
    for (const table of tables) {
      const into = archived ? `archived_${table}` : table;
      const columns = await columnsOf(client, into);
      const values = columns.map((column) => VALUES[column] ?? `source.${column}`);
      for (let from = 0; from < count; from += STEP) {
        await client.query(
          `insert into ${into} (${columns}) select ${values} from ${table} source
           cross join generate_series($2::int, $3::int) n
           cross join lateral (
             select 'job_' || $4 || lpad(n::text, 25, '0') as job_id, ($5::text[])[1 + n % cardinality($5)] as user_id,
                    now() - interval '1 hour' - ($6::int - n) * interval '3 s' as at) copy
           where source.job_id = $1 order by n`,
          [jobId, from, Math.min(from + STEP, count) - 1, archived ? "0" : "1", tenants, count],
        );
      }
    }
  } finally {
    await client.end();
  }
}

/** SQL expressions by column, for the columns in which a copy differs from the original row. */
const VALUES: Record<string, string> = {
  job_id: "copy.job_id",
  user_id: "copy.user_id",
  line_id: "copy.job_id",
  created_at: "copy.at",
  started_at: "copy.at",
  completed_at: "copy.at",
  swept_at: "copy.at",
};

/** The columns of a table, without generated ones. */
async function columnsOf(client: pg.Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  );
  return rows.map(({ name }) => name);
}
