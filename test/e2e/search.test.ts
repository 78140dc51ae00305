import fc from "fast-check";
import type { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { deploy, servingWorker } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { seedJobs } from "../support/seeded-jobs";
import { createTenant, type Tenant } from "../support/tenants";

let forge: Forge;
let tenant: Tenant;

beforeAll(async () => {
  forge = await startForge({ FORGE_RATE_LIMIT_PER_MINUTE: "1000000" });
  tenant = await createTenant(forge, "seeker");
  const failed = { status: "failed", error_code: "timeout" };
  await seedJobs(forge.ctx.pool, [
    { job_id: "job_aaa1", user_id: "seeker", tags: ["Nightly-EU"], created_by: "ci" },
    { job_id: "job_aab2", user_id: "seeker", notes: "the 100% Nightly run_1" },
    { job_id: "job_b", user_id: "seeker", ...failed, completed_at: "2026-03-02T00:00:00Z" },
    {
      job_id: "job_c",
      user_id: "seeker",
      status: "failed",
      error_code: "cancelled",
      completed_at: "2026-03-03T00:00:00Z",
    },
    { job_id: "job_aaa9", user_id: "local", tags: ["nightly"] },
  ]);
});

afterAll(async () => {
  await forge?.stop();
});

async function found(query: string, api: ApiClient = tenant.user): Promise<string[]> {
  const { jobs } = await api.get<{ jobs: { job_id: string }[] }>(`/api/jobs?${query}`);
  return jobs.map(({ job_id }) => job_id).sort();
}

test.each([
  ["q=job_aa", ["job_aaa1", "job_aab2"]],
  ["q=aaa1", []],
  ["q=NIGHTLY", ["job_aaa1", "job_aab2"]],
  ["q=nightly-e", ["job_aaa1"]],
  // % and _ are not wildcards.
  ["q=100%25", ["job_aab2"]],
  ["q=n_1", ["job_aab2"]],
  ["q=t_e", []],
  ["created_by=ci", ["job_aaa1"]],
  ["error_code=timeout", ["job_b"]],
  ["error_code=timeout&error_code=cancelled", ["job_b", "job_c"]],
  ["completed_after=2026-03-02T00:00:00Z", ["job_c"]],
  ["completed_before=2026-03-03T00:00:00Z", ["job_b"]],
  ["q=job_aa&created_by=ci", ["job_aaa1"]],
])("jobs by %s", async (query, expected) => {
  expect(await found(query)).toEqual(expected);
});

test("an admin searches all tenants' jobs", async () => {
  expect(await found("q=nightly", forge.admin)).toEqual(["job_aaa1", "job_aaa9", "job_aab2"]);
});

test("artifacts and pipelines are found by name and the start of their id", async () => {
  const { user } = tenant;
  const response = await fetch(`${user.baseUrl}/api/datasets?name=Law%20Questions`, {
    method: "POST",
    headers: { "x-service-api-key": user.key, "content-type": "application/x-ndjson" },
    body: '{"q": 1}\n',
  });
  const { dataset_id: id } = (await response.json()) as { dataset_id: string };
  const artifacts = async (q: string): Promise<string[]> => {
    const path = `/api/artifacts?q=${q}`;
    const page = await user.get<{ artifacts: { artifact_id: string }[] }>(path);
    return page.artifacts.map(({ artifact_id }) => artifact_id);
  };
  expect(await artifacts("law")).toEqual([id]);
  expect(await artifacts(id.slice(0, 10))).toEqual([id]);
  expect(await artifacts("medicine")).toEqual([]);
  const steps = [{ name: "audit", job_type: "audit", payload: AUDIT }];
  const pipeline = await user.post<{ pipeline_id: string }>("/api/pipelines", {
    steps,
    name: "Sunday review",
    tags: ["weekly"],
    approvals: ["audit"],
  });
  const pipelines = async (q: string): Promise<string[]> => {
    const path = `/api/pipelines?q=${q}`;
    const page = await user.get<{ pipelines: { pipeline_id: string }[] }>(path);
    return page.pipelines.map(({ pipeline_id }) => pipeline_id);
  };
  expect(await pipelines("sunday")).toEqual([pipeline.pipeline_id]);
  expect(await pipelines("WEEK")).toEqual([pipeline.pipeline_id]);
  expect(await pipelines("monday")).toEqual([]);
});

interface Costly {
  job_id: string;
  cost_usd: number | null;
  estimated_cost_usd: number | null;
}

test("jobs show their cost and their expected cost", async () => {
  const { user, worker } = await createTenant(forge, "paying");
  const own = worker("paid");
  await own.register();
  const first = await user.submit("audit", AUDIT);
  await own.complete(await own.take(), { metrics: { rows_processed: 5_000 } });
  await untilEnded(user, first.job_id);
  await user.submit("audit", AUDIT);
  await user.submit("train", { dataset_id: "d", model: "m", epochs: 2, resources: { gpu: 8 } });
  const jobs = await waitFor("the first job to count", async () => {
    const page = await user.get<{ jobs: Costly[] }>("/api/jobs");
    return page.jobs.some((job) => job.estimated_cost_usd === 1) && page.jobs;
  });
  expect(jobs).toEqual([
    expect.objectContaining({ cost_usd: null, estimated_cost_usd: 20 }),
    // Estimated from the first job: 5,000 rows at 0.20 USD per 1,000 rows.
    expect.objectContaining({ cost_usd: null, estimated_cost_usd: 1 }),
    expect.objectContaining({ cost_usd: 1, estimated_cost_usd: null }),
  ]);
  for (const job of jobs) {
    expect(await user.get(`/api/jobs/${job.job_id}`)).toMatchObject({
      cost_usd: job.cost_usd,
      estimated_cost_usd: job.estimated_cost_usd,
    });
  }
});

test("with a budget, the estimate is the amount that the budget reserves", async () => {
  const { user } = await createTenant(forge, "budgeted");
  await user.call("PUT", "/api/billing/budget", { cap_usd: 1_000 });
  const { job_id } = await user.submit("generate", { domain: "law", num_samples: 100_000 });
  const [row] = await all<{ expected: number }>(
    forge.ctx.pool,
    "select expected_cost_usd as expected from jobs where job_id = $1",
    [job_id],
  );
  expect(row?.expected).toBeGreaterThan(0);
  expect(await user.job(job_id)).toMatchObject({ estimated_cost_usd: row?.expected });
});

test("a live deployment's job shows its cost so far", async () => {
  const serving = await servingWorker(forge, "serving");
  const deployment = await deploy(forge.user);
  await execute(
    forge.ctx.pool,
    "update deployments set active_at = active_at - interval '15 days' where deployment_id = $1",
    [deployment.deployment_id],
  );
  const job = await forge.user.get<Costly>(`/api/jobs/${deployment.job_id}`);
  const record = await forge.user.get<{ total_cost_usd: number }>(
    `/api/billing/records/${deployment.job_id}`,
  );
  expect(job.cost_usd).toBeCloseTo(1, 3);
  expect(record.total_cost_usd).toBeCloseTo(job.cost_usd ?? 0, 4);
  await serving.die();
});

interface Records {
  records: { job_id: string; job_type: string; total_cost_usd: number; created_at: string }[];
  next_cursor: string | null;
}

test("records by period, type and cost, in pages of any size", async () => {
  const { user } = await createTenant(forge, "ledger");
  const months = ["2026-01-31T23:59:59.999Z", "2026-02-01T00:00:00Z", "2026-02-28T12:00:00Z"];
  const bills = Array.from({ length: 24 }, (_, n) => ({
    job_id: `job_ledger_${String(n).padStart(2, "0")}`,
    job_type: n % 2 === 0 ? "audit" : "train",
    at: months[n % 3] ?? "",
    // Some bills cost the same, and some differ by a millionth of a USD.
    usd: [3, 3.000001, 12.5, 0][n % 4],
  }));
  await seedJobs(
    forge.ctx.pool,
    bills.map(({ job_id, job_type, at }) => {
      return { job_id, job_type, user_id: "ledger", status: "completed", completed_at: at };
    }),
  );
  await execute(
    forge.ctx.pool,
    `with bills as (
       select * from json_to_recordset($1) b (job_id text, job_type text, at timestamptz, usd numeric)),
     attempted as (
       insert into attempts (job_id, attempt, state, shape, priority, ended_at, outcome)
       select job_id, 1, 'ended', '', 0, at, 'completed' from bills)
     insert into billing_records (job_id, user_id, job_type, attempt, metrics, unit_costs, cost_breakdown,
                                  total_cost_usd, rate_card, gpu_tokens, formula, created_at)
     select job_id, 'ledger', job_type, 1, '{}', '{}', '{}', usd, '{"name": "default"}', '{}', '', at
     from bills`,
    [JSON.stringify(bills)],
  );
  const walk = async (query: string, limit: number): Promise<string[]> => {
    const ids: string[] = [];
    let after = "";
    for (;;) {
      const path = `/api/billing/records?limit=${limit}${query}${after}`;
      const page = await user.get<Records>(path);
      ids.push(...page.records.map(({ job_id }) => job_id));
      if (!page.next_cursor) return ids;
      after = `&after=${page.next_cursor}`;
    }
  };
  const descending = (one: string, other: string): number => (one < other ? 1 : -1);
  const expected = (sort: "time" | "cost", isIn: (bill: (typeof bills)[number]) => boolean) =>
    bills
      .filter(isIn)
      .sort((a, b) => {
        const order =
          sort === "cost" ? Number(b.usd) - Number(a.usd) : Date.parse(b.at) - Date.parse(a.at);
        return order || descending(a.job_id, b.job_id);
      })
      .map(({ job_id }) => job_id);
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 30 }),
      fc.constantFrom("time" as const, "cost" as const),
      fc.constantFrom("", "&period=2026-01", "&period=2026-02"),
      fc.constantFrom("", "&job_type=train"),
      async (limit, sort, period, type) => {
        const month = period.slice("&period=".length);
        expect(await walk(`&sort=${sort}${period}${type}`, limit)).toEqual(
          expected(
            sort,
            (bill) => bill.at.startsWith(month) && (!type || bill.job_type === "train"),
          ),
        );
      },
    ),
    { numRuns: 40 },
  );
});
