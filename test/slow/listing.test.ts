import { performance } from "node:perf_hooks";
import { DEFAULT_RATE_CARD } from "../../core/billing/rate-card";
import { all } from "../../platform/postgres/pool";
import { listJobsStatement } from "../../services/jobs/job-list";
import { type Forge, startForge } from "../support/forge";
import { createTenant, type Tenant } from "../support/tenants";

const FEW = 1_000;
const MANY = 1_000_000;
const ROUNDS = 300;

let forge: Forge;
let small: Tenant;
let large: Tenant;

beforeAll(async () => {
  forge = await startForge({
    FORGE_RATE_LIMIT_PER_MINUTE: "1000000",
    FORGE_RATE_LIMIT_BURST: "1000000",
  });
  small = await createTenant(forge, "small");
  large = await createTenant(forge, "large");
  await fill("small", FEW);
  await fill("large", MANY);
  await sql("vacuum analyze jobs, archived_jobs");
}, 600_000);

afterAll(async () => {
  await forge?.stop();
});

/** Runs on a connection without the usual statement timeout. */
async function sql(text: string, values: unknown[] = []): Promise<void> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: forge.stack.databaseUrl });
  await client.connect();
  await client.query(text, values);
  await client.end();
}

/**
 * Inserts `count` jobs, like those of a tenant after years of use. The jobs were created one minute
 * apart. Every 200th job is unfinished. All other jobs have ended, and the older half of these is
 * archived.
 */
async function fill(userId: string, count: number): Promise<void> {
  await sql(
    `insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                       timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, rate_card,
                       request_id, status, error_code, created_at, completed_at)
     select 'job_' || $1 || lpad(n::text, 10, '0'), $1, 'k', 'audit',
            '{"dataset_uri": "s3://bucket/key"}', '{}', '{}', '{}', 0, 60, 3, 0, '{}', 0, $3, 'r',
            case when n % 200 = 0 then 'pending' else 'failed' end,
            case when n % 200 = 0 then null else 'job_error' end, now() - n * interval '1 minute',
            case when n % 200 = 0 then null else now() end
     from generate_series(1, $2::int) n`,
    [userId, count, DEFAULT_RATE_CARD],
  );
  await sql(
    `with old as (
       delete from jobs where user_id = $1 and status = 'failed'
         and created_at < now() - $2::int / 2 * interval '1 minute' returning *)
     insert into archived_jobs select * from old`,
    [userId, count],
  );
}

async function planOf(userId: string | null, filter: object, after = false): Promise<string> {
  const cursor = { createdUs: Date.now() * 1000 - 3_600_000_000, id: "job_x" };
  const { text, values, hasManyVariants } = listJobsStatement(userId, filter, {
    limit: 50,
    after: after ? cursor : undefined,
  });
  // Only statements without filters are prepared (pages.ts). Prepared statements have one plan for
  // all tenants: the generic one.
  const { pool } = forge.ctx;
  const { rows } = hasManyVariants
    ? await pool.query<{ "QUERY PLAN": string }>(`explain ${text}`, values)
    : await pool.query<{ "QUERY PLAN": string }>(`explain (generic_plan) ${text}`);
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

test.each([
  ["a tenant's jobs", "large", {}, false, ["jobs_by_user", "archived_jobs_by_user"]],
  ["a later page of these jobs", "large", {}, true, ["jobs_by_user", "archived_jobs_by_user"]],
  [
    "its unfinished jobs",
    "large",
    { statuses: ["running", "pending"] },
    false,
    ["jobs_active_by_user"],
  ],
] as const)("%s are read from indexes in order", async (_what, userId, filter, after, indexes) => {
  const plan = await planOf(userId, filter, after);
  // The part of the plan below the Limit node. A sort in this part would read all rows. A sort
  // above the Limit node is allowed, because it sorts only one page.
  const [limited = ""] = plan.slice(plan.indexOf("Limit")).split("SubPlan");
  const scans = [...limited.matchAll(/(?:Scan using|Seq Scan on) (\w*jobs\w*)/g)];
  expect(scans.map(([, name]) => name)).toEqual(indexes);
  expect(limited).not.toContain("Sort  (");
});

test("a page out of a million jobs takes at most 1.2 times one out of a thousand", async () => {
  const time = async ({ user }: Tenant): Promise<number> => {
    const began = performance.now();
    await user.get("/api/jobs");
    return performance.now() - began;
  };
  for (let n = 0; n < 50; n++) await Promise.all([time(small), time(large)]);
  const times: Record<"small" | "large", number[]> = { small: [], large: [] };
  // Measure both tenants in turn, so that other load on the machine slows both.
  for (let n = 0; n < ROUNDS; n++) {
    times.small.push(await time(small));
    times.large.push(await time(large));
  }
  const [few, many] = [median(times.small), median(times.large)];
  process.stderr.write(
    `one page: ${few.toFixed(2)} ms of ${FEW}, ${many.toFixed(2)} ms of ${MANY}\n`,
  );
  expect(many / few).toBeLessThanOrEqual(1.2);
}, 120_000);

test("so does the last page", async () => {
  const oldest = await all<{ us: number }>(
    forge.ctx.pool,
    "select (extract(epoch from min(created_at)) * 1000000)::bigint + 3000000000 as us from jobs where user_id = 'large'",
  );
  const began = performance.now();
  const page = await large.user.get<{ jobs: unknown[]; has_more: boolean }>(
    `/api/jobs?after=${oldest[0]?.us}_job_x`,
  );
  expect(page.jobs.length).toBeGreaterThan(40);
  expect(performance.now() - began).toBeLessThan(500);
});

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
