/**
 * Months, price changes, and storage. The database and the server use a time zone with daylight
 * saving time, which must not change any bill.
 */

import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { closeMonths } from "../../services/billing/close-months";
import { DatabaseMetrics } from "../../services/metrics/database-metrics";
import { billed, readRecord, readSummary, recomputeCheck } from "../support/billing";
import { type Deployment, deploy, servingWorker } from "../support/deployments";
import { usd } from "../support/expected-bills";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import type { ServingWorker } from "../support/serving-worker";
import { createTenant, type Tenant } from "../support/tenants";

let forge: Forge;
let serving: ServingWorker;

const ZONE = "America/New_York";

beforeAll(async () => {
  forge = await startForge({ TZ: ZONE }, { own: ["server"] });
  const { database } = (await maybeOne<{ database: string }>(
    forge.ctx.pool,
    "select current_database() as database",
  )) ?? { database: "" };
  await forge.ctx.pool.query(`alter database "${database}" set timezone = '${ZONE}'`);
  // The time zone applies to new connections only. So restart the server, and close this test's
  // idle connections.
  await forge.stack.server?.stop();
  await forge.stack.startServer();
  await all(
    forge.ctx.pool,
    "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database() and application_name = 'forge' and state = 'idle'",
  ).catch(() => undefined);
  serving = await servingWorker(forge, "serving");
});

afterAll(async () => {
  await serving?.die();
  await forge?.stop();
});

/** Deploys a model, and backdates the deployment's start. */
async function deployedSince(at: string, more = {}): Promise<Deployment> {
  const one = await deploy(forge.user, more);
  await execute(forge.ctx.pool, "update deployments set active_at = $2 where deployment_id = $1", [
    one.deployment_id,
    at,
  ]);
  return one;
}

const linesOf = async (jobId: string): Promise<Record<string, number>> => {
  const rows = await all<{ month: string; cost_usd: number }>(
    forge.ctx.pool,
    `select to_char(month, 'YYYY-MM') as month, cost_usd from billing_lines
     where job_id = $1 order by 1`,
    [jobId],
  );
  return Object.fromEntries(rows.map(({ month, cost_usd }) => [month, cost_usd]));
};

const daysOf = async (jobId: string): Promise<number> =>
  (await readRecord(forge.user, jobId)).metrics.deployment_lifetime_days ?? 0;

const micros = (usd: number): number => Math.round(usd * 1e6);
const sumOf = (amounts: number[]): number =>
  amounts.reduce((sum, usd) => sum + micros(usd), 0) / 1e6;

test("a deployment is billed in the months of its lifetime, with leap day and daylight saving time", async () => {
  const one = await deployedSince("2024-01-16T12:00:00Z");
  const thisMonth = (await readSummary(forge.user)).period;

  // The cost of a month accrues until the month is closed.
  expect(await readSummary(forge.user, "2024-02")).toMatchObject({
    accruing_usd: 1.933334,
    total_cost_usd: 1.933334,
    by_job_type: { deploy: 1.933334 },
    records: 1,
  });
  expect((await readSummary(forge.user, "2023-12")).accruing_usd).toBe(0);
  while ((await closeMonths(forge.ctx)) > 0);
  const closed = await linesOf(one.job_id);
  // The bill covers 15.5 days of January, 29 days of February and 31 days of March. The change to
  // daylight saving time in March makes no difference.
  expect(closed).toMatchObject({ "2024-01": 1.033333, "2024-02": 1.933334, "2024-03": 2.066666 });
  expect(closed).toMatchObject({ "2024-11": 2, "2025-02": expect.any(Number) });
  expect(closed[thisMonth]).toBeUndefined();

  const february = await readSummary(forge.user, "2024-02");
  expect(february).toMatchObject({
    total_cost_usd: 1.933334,
    accruing_usd: 0,
    forecast_usd: 1.933334,
  });
  const live = await readSummary(forge.user);
  expect(live.accruing_usd).toBeGreaterThan(0);
  expect(live.by_job_type).toEqual({ deploy: live.accruing_usd });
  expect(live).toMatchObject({ total_cost_usd: live.accruing_usd, records: 1 });
  expect(live.forecast_usd).toBeGreaterThanOrEqual(live.accruing_usd);
  expect(await readRecord(forge.user, one.job_id)).toMatchObject({ state: "accruing" });

  // The stop writes the remaining lines, and changes no existing one.
  await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
  const stopped = await linesOf(one.job_id);
  expect(stopped).toMatchObject(closed);
  const record = await readRecord(forge.user, one.job_id);
  expect(record.state).toBe("final");
  expect(sumOf(Object.values(stopped))).toBe(record.total_cost_usd);
  expect(record.total_cost_usd).toBe(usd(await daysOf(one.job_id), 30, "2.00").toNumber());
  expect(await readSummary(forge.user, "2024-02")).toMatchObject({ total_cost_usd: 1.933334 });
  const now = await readSummary(forge.user);
  expect(now).toMatchObject({ accruing_usd: 0, by_job_type: { deploy: stopped[thisMonth] } });
  expect(await closeMonths(forge.ctx)).toBe(0);
});

test("deployments whose months can't be written don't block others", async () => {
  const { pool } = forge.ctx;
  const one = await deployedSince("2024-01-16T12:00:00Z");
  // `closeMonths` reads 100 deployments at a time, in the order of their ids. Insert 101 copies
  // with smaller ids, so that the copies fill the first page and the deployment is on the second.
  const copy = async (table: string, ids: string[], of: [string, string]): Promise<void> => {
    const columns = await all<{ name: string }>(
      pool,
      `select column_name as name from information_schema.columns
       where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'`,
      [table],
    );
    const values = columns.map(({ name }) => (ids.includes(name) ? "'!' || n" : `t.${name}`));
    await execute(
      pool,
      `insert into ${table} (${columns.map(({ name }) => name).join()})
       select ${values.join()} from ${table} t, generate_series(1, 101) n where t.${of[0]} = $1`,
      [of[1]],
    );
  };
  const job: [string, string] = ["job_id", one.job_id];
  await copy("jobs", ["job_id"], job);
  await copy("billing_records", ["job_id"], job);
  await copy("artifacts", ["job_id", "artifact_id"], job);
  await copy("deployments", ["job_id", "deployment_id"], job);
  await pool.query("alter table billing_lines add constraint no_copies check (job_id !~ '^!')");
  try {
    await closeMonths(forge.ctx);
    expect(await linesOf(one.job_id)).toMatchObject({ "2024-01": 1.033333 });
  } finally {
    for (const table of ["deployments", "artifacts", "billing_records", "jobs"]) {
      await execute(pool, `delete from ${table} where job_id ~ '^!'`);
    }
    await pool.query("alter table billing_lines drop constraint no_copies");
  }
  await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
});

test("a live deployment's cost is added to its tag's total, although 100 other tags cost more", async () => {
  const one = await deployedSince("2024-01-16T12:00:00Z", { tags: ["live"] });
  const { accruing_usd: accruing, period } = await readSummary(forge.user);
  await execute(
    forge.ctx.pool,
    `insert into billing_totals (user_id, month, dimension, value, records, cost_usd, gpu_hours,
                                 tokens, unbilled_gpu_hours)
     select 'local', $1::date, 'tag', 'live', 1, 0.5, 0, 0, 0
     union all
     select 'local', $1::date, 'tag', 'other-' || n, 1, 0.6, 0, 0, 0 from generate_series(1, 100) n`,
    [`${period}-01`],
  );
  const { by_tag: byTag } = await readSummary(forge.user);
  expect(byTag.live).toBeCloseTo(accruing + 0.5, 4);
  expect(Object.keys(byTag)).toHaveLength(100);
  await execute(forge.ctx.pool, "delete from billing_totals where dimension = 'tag'");
  await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
});

test("a deployment stopped before its months are closed costs the same", async () => {
  const one = await deployedSince("2024-01-16T12:00:00Z");
  await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
  expect(await linesOf(one.job_id)).toMatchObject({ "2024-01": 1.033333, "2024-02": 1.933334 });
  const record = await readRecord(forge.user, one.job_id);
  expect(sumOf(Object.values(await linesOf(one.job_id)))).toBe(record.total_cost_usd);
});

test.each([200, -200])(
  "closed months stay, and add up, if the clock is set by %i days afterwards",
  async (days) => {
    const one = await deployedSince("2025-01-16T12:00:00Z");
    while ((await closeMonths(forge.ctx)) > 0);
    const closed = await linesOf(one.job_id);
    const set = async (by: number): Promise<unknown> =>
      await execute(forge.ctx.pool, "insert into clock_steps (by_s) values ($1)", [by * 86_400]);
    // Record the clock step as a server would.
    await set(days);
    await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
    await set(-days);
    const lines = await linesOf(one.job_id);
    expect(lines).toMatchObject(closed);
    const record = await readRecord(forge.user, one.job_id);
    expect(sumOf(Object.values(lines))).toBe(record.total_cost_usd);
  },
);

test("months closed by many at once, during its stop, are written once", async () => {
  const one = await deployedSince("2025-12-31T23:59:59Z");
  await Promise.all([
    ...Array.from({ length: 8 }, () => closeMonths(forge.ctx)),
    forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {}),
    closeMonths(forge.ctx),
  ]);
  const lines = await linesOf(one.job_id);
  expect(lines).toMatchObject({ "2025-12": 0.000001, "2026-01": 2.066666 });
  const record = await readRecord(forge.user, one.job_id);
  expect(sumOf(Object.values(lines))).toBe(record.total_cost_usd);
});

describe("rate cards", () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant(forge, "research");
  });

  const ours = async (id: string) => {
    const worker = tenant.worker(id);
    await worker.register({ name: "NVIDIA H100", memory_gb: 80 });
    return { user: tenant.user, worker };
  };

  const newCard = (prices: object, more: object = {}) =>
    forge.admin.call<Record<string, unknown> & { error: object }>("POST", "/api/admin/rate-cards", {
      name: "research",
      prices: {
        ...{ basis: "metered", gpuHour: { default: "2.50", h100: "4" }, inputPer1mTokens: "10.00" },
        ...{ outputPer1mTokens: "30.00", storagePerGbMonth: "1000", deployPerMonth: "3" },
        ...prices,
      },
      ...more,
    });

  test("have versions with a start date; a job keeps the version of its submission", async () => {
    expect(await newCard({})).toMatchObject({ status: 201, body: { version: 1 } });
    const assign = (body: object) =>
      forge.admin.call("PUT", "/api/admin/users/research/rate-card", body);
    expect((await assign({ rate_card: "none-such" })).status).toBe(404);
    expect((await assign({ rate_card: "research" })).status).toBe(200);
    expect(await tenant.user.get("/api/billing/rates")).toMatchObject({
      ...{
        rate_card: "research",
        version: 1,
        basis: "metered",
        gpu_hour: { default: 2.5, h100: 4 },
      },
      ...{ storage_per_gb_month: 1000, generation_per_1m_tokens: 0 },
    });

    const { user, worker } = await ours("priced");
    const { job_id } = await user.submit("audit", AUDIT);
    const job = await worker.take();
    // Output tokens cost twice as much from now on, and nothing from 2099 on.
    expect(await newCard({ outputPer1mTokens: "60" })).toMatchObject({ body: { version: 2 } });
    const future = { effective_from: "2099-01-01T00:00:00Z" };
    expect(await newCard({ outputPer1mTokens: "0" }, future)).toMatchObject({
      body: { version: 3 },
    });
    const used = { tokens_used: 3_000, tokens_generated: 1_000, gpu_hours: 0 };
    // The number of tokens is within its bounds, but the bill would be 30 billion USD.
    expect(await worker.complete(job, { metrics: { output_tokens: 1e15 } })).toMatchObject({
      ...{ status: 400, body: { error: { code: "invalid_request", param: "metrics" } } },
    });
    await worker.complete(job, { metrics: used });
    await untilEnded(user, job_id);
    const record = await readRecord(user, job_id);
    expect(record).toMatchObject({
      rate_card: "research",
      rate_card_version: 1,
      total_cost_usd: 0.05,
    });
    expect(record.cost_breakdown).toMatchObject({
      input_tokens: 0.02,
      output_tokens: 0.03,
      audit: 0,
    });
    const next = await billed(forge, { user, worker }, ["audit", AUDIT], used);
    expect(next).toMatchObject({ rate_card_version: 2, total_cost_usd: 0.08 });
    const train: [string, object] = ["train", { dataset_id: "d", model: "m" }];
    const trained = await billed(forge, { user, worker }, train, { gpu_hours: 1 }, 1);
    expect(trained).toMatchObject({ total_cost_usd: 4, cost_breakdown: { gpu: 4 } });
  });

  test("never change the past", async () => {
    const past = await newCard({}, { effective_from: "2020-01-01T00:00:00Z" });
    expect(past).toMatchObject({ status: 409, body: { error: { param: "effective_from" } } });
    // Version 4, from 2098 on, revokes the version that was announced for 2099.
    const taken = await newCard({}, { effective_from: "2098-01-01T00:00:00Z" });
    expect(taken).toMatchObject({ status: 201, body: { version: 4 } });
    expect(await tenant.user.get("/api/billing/rates")).toMatchObject({ version: 2 });
    for (const prices of [{ gpuHour: {} }, { inputPer1mTokens: "-1" }, { inputPer1mTokens: 3 }]) {
      const param = `prices.${Object.keys(prices)[0]}`;
      const { status, body } = await newCard(prices);
      expect([status, body.error]).toEqual([400, expect.objectContaining({ param })]);
    }
    const { entries } = await forge.admin.get<{ entries: { action: string; subject: string }[] }>(
      "/api/audit-log",
    );
    // Leave out the entries of the admin's requests.
    const changes = entries.filter(({ action }) => action !== "admin_request");
    expect(changes.map(({ action, subject }) => [action, subject])).toEqual([
      ["rate_card_added", "research:4"],
      ["rate_card_added", "research:3"],
      ["rate_card_added", "research:2"],
      ["rate_card_assigned", "research"],
      ["rate_card_added", "research:1"],
    ]);
  });

  test("with a price for storage bill the stored bytes by time", async () => {
    const body = Buffer.alloc(2_000_000, "{}\n");
    const upload = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
      method: "POST",
      headers: { "x-service-api-key": tenant.user.key, "content-type": "application/x-ndjson" },
      body,
    });
    expect(upload.status).toBe(201);
    const { artifact_id: id } = (await upload.json()) as { artifact_id: string };
    // Backdate the artifact to the middle of February 2024, and the rate card to before that.
    const { pool } = forge.ctx;
    await execute(pool, "delete from storage_changes where user_id = 'research'");
    const since =
      "update artifacts set registered_at = null, manifest = null where artifact_id = $1";
    const manifest = await maybeOne<{ manifest: object }>(
      pool,
      "select manifest from artifacts where artifact_id = $1",
      [id],
    );
    await execute(pool, since, [id]);
    await execute(
      pool,
      `update artifacts set created_at = '2024-02-15T12:00:00Z', registered_at = now(), manifest = $2
       where artifact_id = $1`,
      [id, manifest?.manifest],
    );
    const backdate = async (table: string) =>
      await execute(
        pool,
        `update ${table} set effective_from = '2024-01-01' where effective_from < now()
           and ${table === "rate_cards" ? "name = 'research' and version = 2" : "user_id = 'research'"}`,
      );
    await backdate("rate_cards");
    await backdate("tenant_rate_cards");

    const plain = async (period: string): Promise<number> =>
      (await tenant.user.get<{ gb_months: number }>(`/api/storage?period=${period}`)).gb_months;
    for (const period of ["2024-01", "2024-02", "2024-03", undefined]) {
      const summary = await readSummary(tenant.user, period);
      const artifacts = period === undefined ? 7 : 9;
      expect(summary.storage.gb_months).toBeCloseTo(await plain(summary.period), artifacts);
    }
    // 2 MB for half of February's 29 days, at 1,000 USD per GB-month, cost 1 USD.
    expect((await readSummary(tenant.user, "2024-02")).storage.amount_usd).toBe(1);
    expect((await readSummary(tenant.user, "2024-03")).storage.amount_usd).toBe(2);

    const behind = /^forge_billing_months_behind\{of="storage"\} (\d+)$/m;
    const metrics = await new DatabaseMetrics(forge.ctx).text();
    expect(Number(behind.exec(metrics)?.[1])).toBeGreaterThan(1);
    while ((await closeMonths(forge.ctx)) > 0);
    const march = await readSummary(tenant.user, "2024-03");
    expect(march).toMatchObject({ storage: { amount_usd: 2 }, total_cost_usd: 0 });
    expect(march.estimated_invoice).toMatchObject({
      ...{ total_usd: 2, lines: [{ kind: "storage", job_type: null, amount_usd: 2 }] },
    });
    // A closed month does not change, even if the stored bytes do.
    await forge.ctx.pool.query("update storage_changes set bytes = 0, byte_seconds = 0");
    expect((await readSummary(tenant.user, "2024-03")).storage.amount_usd).toBe(2);
    // Tenants with a per-job rate card don't pay for storage.
    expect((await readSummary(forge.user)).storage.amount_usd).toBe(0);
  });
});

test("a month before the first rate card is empty", async () => {
  for (const period of ["1000-01", "1969-12"]) {
    const summary = await forge.user.get(`/api/billing/summary?period=${period}`);
    expect(summary).toMatchObject({ period, total_cost_usd: 0 });
  }
});

test("the operator's check finds no difference, and finds one that the test creates", async () => {
  expect((await recomputeCheck(forge)).code).toBe(0);
  await forge.ctx.pool.query(
    "update billing_totals set cost_usd = cost_usd + 1 where month = '2024-02-01' and dimension = 'job_type'",
  );
  const found = await recomputeCheck(forge);
  expect([found.code, found.stdout]).toEqual([
    1,
    expect.stringContaining('total of local, 2024-02, job_type "deploy"'),
  ]);
  expect((await recomputeCheck(forge, "--rebuild-totals")).code).toBe(0);
});
