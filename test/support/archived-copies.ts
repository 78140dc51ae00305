import pg from "pg";

/** How many copies one statement inserts. */
const STEP = 500_000;

interface Copies {
  count: number;
  tenants: string[];
  /** Whether to insert the copies where archived jobs are. Otherwise they are as if they had just been swept. */
  archived: boolean;
}

/**
 * Inserts copies of a completed job and its attempt, one every three seconds up to an hour ago. Leaves out everything
 * else that a job has, except for the billing line of a copy that is not archived: without it, the copy would never be
 * archived. @param url of a superuser.
 */
export async function copyJob(url: string, jobId: string, copies: Copies): Promise<void> {
  const { archived, count, tenants } = copies;
  const tables = archived ? ["jobs", "attempts"] : ["jobs", "attempts", "billing_lines"];
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // Without triggers and without checks of foreign keys.
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

/** SQL: the values of columns in which a copy differs. */
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
