import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiClient } from "../../dev/api-client";
import { all } from "../../platform/postgres/pool";
import {
  type BillingRecord,
  billed,
  readRecord,
  readSummary,
  recomputeCheck,
} from "../support/billing";
import { usd } from "../support/expected-bills";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, backdateStart, untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

const TRAIN: [string, object] = ["train", { dataset_id: "d", model: "m", resources: { gpu: 1 } }];

beforeAll(async () => {
  forge = await startForge({ FORGE_BILL_OUTCOMES: "failed" });
  worker = await forge.worker("w", { name: "NVIDIA H100 80GB", memory_gb: 80 });
});

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
});

const fileOf = (jobId: string): unknown =>
  JSON.parse(
    readFileSync(join(forge.stack.storeDir, `billing/records/local/${jobId}.json`), "utf8"),
  );

const ours = () => ({ user: forge.user, worker });

describe("a worker that lies", () => {
  test("about its GPU hours is billed as measured, and flagged", async () => {
    const record = await billed(forge, ours(), TRAIN, { gpu_hours: 20 }, 2);
    const [attempt] = record.attempts;
    expect(attempt?.gpu_hours_measured).toBeGreaterThanOrEqual(2);
    expect(attempt?.gpu_hours_measured).toBeLessThan(2.01);
    expect(attempt).toMatchObject({
      gpu_hours: attempt?.gpu_hours_measured,
      gpu_hours_reported: 20,
      billed: true,
    });
    expect(record.flags).toEqual(["gpu_hours_over_measured"]);
    const hours = attempt?.gpu_hours_measured ?? 0;
    expect(record.total_cost_usd).toBe(usd(hours, 1, "2.50").toNumber());
    // The artifact's manifest has the billed GPU hours, not the reported ones.
    const { artifacts } = await forge.user.get<{ artifacts: { manifest: object }[] }>(
      `/api/jobs/${record.job_id}/artifacts`,
    );
    const manifest = artifacts[0]?.manifest as { metrics: Record<string, number> };
    expect(manifest.metrics.gpu_hours).toBe(attempt?.gpu_hours_measured);
  });

  test("by reporting nothing is billed as measured, and flagged", async () => {
    const record = await billed(forge, ours(), TRAIN, {}, 1);
    expect(record.metrics.gpu_hours).toBe(record.metrics.gpu_hours_measured);
    expect(record.flags).toEqual(["gpu_hours_not_reported"]);
  });

  test("while the clock steps back is billed nothing, and its job ends", async () => {
    const record = await billed(forge, ours(), TRAIN, { gpu_hours: 1 }, -1);
    expect(record.metrics).toMatchObject({ gpu_hours: 0, gpu_hours_measured: 0 });
    const [attempt] = await forge.user.attempts(record.job_id);
    expect(Date.parse(attempt?.ended_at ?? "")).toBeGreaterThanOrEqual(
      Date.parse(attempt?.started_at ?? ""),
    );
  });

  test("about nothing is billed as reported", async () => {
    const record = await billed(forge, ours(), TRAIN, { gpu_hours: 1.5 }, 2);
    expect(record).toMatchObject({ total_cost_usd: 3.75, flags: [] });
    expect(record.formula).toBe("1.5 GPU hours x 2.50 = 3.75 USD");
    expect(fileOf(record.job_id)).toEqual(record);
  });

  test("with invalid numbers is refused, and may send correct ones", async () => {
    const { job_id } = await forge.user.submit(...TRAIN);
    const job = await worker.take();
    const body = (number: string): string =>
      `{"worker_id":"w","job_id":"${job_id}","status":"completed","result":{},"metrics":{"gpu_hours":${number}}}`;
    for (const number of ["NaN", "Infinity", "1e999", "-1", "1e308", '"2"', "[1]", "true", "{}"]) {
      const answer = await fetch(`${forge.stack.apiUrl}/api/workers/job_result`, {
        method: "POST",
        headers: {
          "x-service-api-key": forge.stack.keys.workerKey,
          "content-type": "application/json",
        },
        body: body(number),
      });
      expect([number, answer.status]).toEqual([number, 400]);
      const { error } = (await answer.json()) as { error: { code: string; param?: string } };
      expect([
        ["malformed_json", undefined],
        ["invalid_request", "metrics.gpu_hours"],
      ]).toContainEqual([error.code, error.param]);
    }
    expect((await forge.user.job(job_id)).status).toBe("running");
    await backdateStart(forge, job, 1);
    await worker.complete(job, { metrics: { gpu_hours: 0.5 } });
    await untilEnded(forge.user, job_id);
    expect((await readRecord(forge.user, job_id)).total_cost_usd).toBe(1.25);
  });
});

describe("a worker that reports implausible numbers", () => {
  let user: ApiClient;
  let liar: TestWorker;

  beforeAll(async () => {
    const tenant = await createTenant(forge, "liars");
    user = tenant.user;
    liar = tenant.worker("liar");
    await liar.register();
  });

  async function recordOf(type: string, body: object, metrics: object): Promise<BillingRecord> {
    const { job_id: id } = await user.submit(type, body);
    await liar.complete(await liar.take(), { metrics });
    await untilEnded(user, id);
    return await readRecord(user, id);
  }

  test.each<[string, object, string, number, number]>([
    ["generate", { task: "t", size: 10, teacher: "t" }, "tokens_generated", 1e15, 30],
    ["distill", { dataset_id: "theirs", teacher: "t" }, "tokens_generated", 1e15, 300],
    ["audit", AUDIT, "rows_processed", 1e12, 2_000],
    ["evaluate", { checkpoint_id: "c" }, "samples_evaluated", 1e12, 1_000],
  ])("for a short %s job is billed up to the plausible maximum", async (...given) => {
    const [type, body, field, lie, usd] = given;
    const record = await recordOf(type, body, { [field]: lie });
    expect(record).toMatchObject({ total_cost_usd: usd, flags: ["usage_over_plausible"] });
    expect(record.metrics[field]).toBeLessThan(lie / 1_000);
    expect(record.attempts[0]).toMatchObject({ reported: { [field]: lie } });
  });

  test("for an audit of a registered dataset is billed at most its rows", async () => {
    const csv = `n\n${Array.from({ length: 150_000 }, (_, n) => n).join("\n")}\n`;
    const response = await fetch(`${forge.stack.apiUrl}/api/datasets?name=rows`, {
      method: "POST",
      headers: { "x-service-api-key": user.key, "content-type": "text/csv" },
      body: csv,
    });
    const { dataset_uri } = (await response.json()) as { dataset_uri: string };
    const record = await recordOf("audit", { dataset_uri }, { rows_processed: 9e6 });
    expect(record).toMatchObject({ total_cost_usd: 30, flags: ["usage_over_plausible"] });
  });
});

test("of many contradicting results at once, one is billed once", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      worker.complete(job, { metrics: { rows_processed: 1_000 * (1 + (n % 3)) } }),
    ),
  );
  const accepted = answers.filter(({ status }) => status === 200).length;
  expect(accepted).toBeGreaterThanOrEqual(10);
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(30 - accepted);
  await untilEnded(forge.user, job_id);
  const rows = await all<{ n: number; lines: number }>(
    forge.ctx.pool,
    `select (select count(*) from billing_records where job_id = $1) as n,
            (select count(*) from billing_lines where job_id = $1) as lines`,
    [job_id],
  );
  expect(rows).toEqual([{ n: 1, lines: 1 }]);
  const record = await readRecord(forge.user, job_id);
  expect(fileOf(job_id)).toEqual(record);
  expect([0.2, 0.4, 0.6]).toContain(record.total_cost_usd);
});

test("failed attempts are shown; those that the operator configured are billed", async () => {
  const before = await readSummary(forge.user);
  const { job_id } = await forge.user.submit(...TRAIN);
  for (const hours of [1, 2]) {
    const job = await worker.take();
    await backdateStart(forge, job, hours);
    const metrics = { gpu_hours: hours, tokens_generated: "nonsense" };
    await worker.fail(job, { retryable: true, metrics });
  }
  const last = await worker.take();
  await backdateStart(forge, last, 4);
  await worker.complete(last, { metrics: { gpu_hours: 4 } });
  await untilEnded(forge.user, job_id);
  const record = await readRecord(forge.user, job_id);
  expect(record.attempts.map(({ outcome, billed: counts }) => [outcome, counts])).toEqual([
    ["failed", true],
    ["failed", true],
    ["completed", true],
  ]);
  expect(record).toMatchObject({ total_cost_usd: 17.5, metrics: { gpu_hours: 7 } });
  expect(record.formula).toBe(
    "1 GPU hours x 2.50 + 2 GPU hours x 2.50 + 4 GPU hours x 2.50 = 17.5 USD",
  );

  // A cancelled job is not billed.
  const cancelled = await forge.user.submit(...TRAIN);
  const job = await worker.take();
  await backdateStart(forge, job, 3);
  await forge.user.post(`/api/jobs/${cancelled.job_id}/cancel`, {});
  await worker.fail(job, { metrics: { gpu_hours: 2.5 } });
  await untilEnded(forge.user, cancelled.job_id);
  await forge.proveInvariants();
  const { status } = await forge.user.call("GET", `/api/billing/records/${cancelled.job_id}`);
  expect(status).toBe(404);
  const [attempt] = await forge.user.attempts(cancelled.job_id);
  expect(attempt).toMatchObject({ outcome: "cancelled", usage: { gpu_hours: 2.5 } });
  expect(attempt?.gpu_hours_measured).toBeGreaterThan(2.99);
  const after = await readSummary(forge.user);
  expect(after.unbilled_gpu_hours - before.unbilled_gpu_hours).toBeCloseTo(2.5, 9);
  expect(after.gpu_hours_total - before.gpu_hours_total).toBeCloseTo(7, 9);
  expect(after.records - before.records).toBe(1);
});

test("a failed job is billed with its record and file, if the operator configured it", async () => {
  const { job_id } = await forge.user.submit(TRAIN[0], { ...TRAIN[1], max_attempts: 1 });
  const job = await worker.take();
  await backdateStart(forge, job, 1);
  await worker.fail(job, { metrics: { gpu_hours: 1 } });
  await untilEnded(forge.user, job_id);
  const record = await readRecord(forge.user, job_id);
  expect(record).toMatchObject({ total_cost_usd: 2.5, attempts: [{ outcome: "failed" }] });
  expect(fileOf(job_id)).toEqual(record);
});

test("the summary has tags and pipelines, and an invoice and a CSV with the same sum", async () => {
  const tagged = { ...AUDIT, tags: ["blue", "=cmd()", "blue"] };
  const record = await billed(forge, ours(), ["audit", tagged], { rows_processed: 5_000 });
  const summary = await readSummary(forge.user);
  expect(summary.by_tag).toEqual({ blue: 1, "=cmd()": 1 });
  const lines = summary.estimated_invoice.lines.map(({ amount_usd: usd }) => Math.round(usd * 1e6));
  const total = Math.round(summary.estimated_invoice.total_usd * 1e6);
  expect(lines.reduce((sum, line) => sum + line, 0)).toBe(total);
  expect(Math.round(summary.total_cost_usd * 1e6)).toBe(total);
  expect(summary.forecast_usd).toBeGreaterThanOrEqual(summary.total_cost_usd);

  const response = await fetch(`${forge.stack.apiUrl}/api/billing/export`, {
    headers: { "x-service-api-key": forge.stack.keys.userKey },
  });
  expect(response.headers.get("content-disposition")).toContain(
    `forge-local-${summary.period}.csv`,
  );
  const [header = "", ...rows] = (await response.text()).trimEnd().split("\r\n");
  expect(header.split(",").slice(0, 4)).toEqual(["line_id", "created_at", "job_id", "job_type"]);
  const cost = header.split(",").indexOf("cost_usd");
  // Splitting at commas works, because no field before the cost contains a comma.
  const costs = rows.map((row) => Math.round(Number(row.split(",")[cost]) * 1e6));
  expect(costs.reduce((sum, one) => sum + one, 0)).toBe(total);
  const row = rows.find((one) => one.includes(record.job_id));
  // Text that a spreadsheet would run as a formula is escaped.
  expect(row).toContain("blue =cmd() blue");
});

test("an estimate is exact if the payload is sufficient, otherwise by history, otherwise by a default", async () => {
  const estimate = async (type: string, payload: object) =>
    await forge.user.post<Record<string, number | string>>("/api/billing/estimate", {
      job_type: type,
      payload,
    });
  const generate = { task: "qa", size: 1_000, teacher: "t" };
  const prior = await estimate("generate", generate);
  expect(prior).toMatchObject({ basis: "prior", samples: 0, rate_card: "default" });
  expect(prior.expected_usd).toBe(0.09);
  expect(Number(prior.low_usd)).toBeLessThan(Number(prior.high_usd));

  for (const tokens of [100_000, 200_000, 900_000]) {
    await billed(forge, ours(), ["generate", { ...generate, size: 500 }], {
      tokens_generated: tokens,
    });
  }
  expect(await estimate("generate", generate)).toMatchObject({
    ...{ basis: "history", samples: 3, low_usd: 0.06, expected_usd: 0.12, high_usd: 0.54 },
    formula: "(400000 tokens / 1000000) x 0.30 = 0.12 USD",
  });

  const rows = Array.from({ length: 250 }, (_, n) => `{"n":${n}}\n`).join("");
  const uploaded = await fetch(`${forge.stack.apiUrl}/api/datasets?name=rows`, {
    method: "POST",
    headers: {
      "x-service-api-key": forge.stack.keys.userKey,
      "content-type": "application/x-ndjson",
    },
    body: rows,
  });
  const { dataset_uri } = (await uploaded.json()) as { dataset_uri: string };
  expect(await estimate("audit", { dataset_uri })).toMatchObject({
    ...{ basis: "payload", low_usd: 0.05, expected_usd: 0.05, high_usd: 0.05 },
  });
  const deploy = await estimate("deploy", { checkpoint_id: "c" });
  expect(deploy).toMatchObject({ basis: "payload" });
  expect(Number(deploy.expected_usd)).toBeLessThanOrEqual((31 / 30) * 2);

  const refused = async (body: object) =>
    (await forge.user.call<{ error: object }>("POST", "/api/billing/estimate", body)).body.error;
  expect(await refused({ job_type: "trian", payload: {} })).toMatchObject({ param: "job_type" });
  expect(await refused({ job_type: "train", payload: { epoch: 3 } })).toMatchObject({
    param: expect.stringMatching(/^payload\./),
  });
});

test("another tenant's bills are not found", async () => {
  const { api_key } = await forge.admin.post<{ api_key: { key: string } }>("/api/admin/users", {
    name: "Stranger",
    user_id: "stranger",
  });
  const { records } = await forge.user.get<{ records: BillingRecord[] }>("/api/billing/records");
  const stranger = { "x-service-api-key": api_key.key };
  for (const path of [
    `records/${records[0]?.job_id}`,
    "summary?user_id=local",
    "export?user_id=local",
  ]) {
    const { status } = await fetch(`${forge.stack.apiUrl}/api/billing/${path}`, {
      headers: stranger,
    });
    expect([path, status]).toEqual([path, path.startsWith("records") ? 404 : 403]);
  }
});

test("the operator's check finds no difference", async () => {
  const { code, stdout } = await recomputeCheck(forge);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^\d+ records, 0 differences\n$/)]);
  expect(Number.parseInt(stdout, 10)).toBeGreaterThan(8);
});
