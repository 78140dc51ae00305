import { billJob, requireBillable } from "../../activities/billing/billing";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import {
  type BudgetTenant,
  budgetTenantOf,
  doJobs,
  readBudget,
  setCap,
  submitAtOnce,
  uploadRows,
} from "../support/budgets";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { startPipeline, untilPipeline } from "../support/pipelines";
import { refuse } from "../support/refusals";
import { slowTest } from "../support/slow";

const AT_ONCE = 100;
/** At the default rate card, an audit of this many rows costs 0.20 USD. */
const ROWS = 1_000;

let forge: Forge;
let otherUrl: string;

beforeAll(async () => {
  const limits = {
    FORGE_RATE_LIMIT_PER_MINUTE: "1000000",
    FORGE_RATE_LIMIT_BURST: "1000000",
    FORGE_DEPLOYMENT_STOP_GRACE_S: "1",
    FORGE_BILL_OUTCOMES: "cancelled",
  };
  forge = await startForge(limits, { split: true });
  otherUrl = await forge.stack.startAnotherServer();
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

const createBudgetTenant = (id: string): Promise<BudgetTenant> =>
  budgetTenantOf(forge, id, otherUrl);

test("of 100 at once, to two servers, as many are accepted as the cap allows", async () => {
  const { user, users, budgetWorker: worker } = await createBudgetTenant("exact");
  const body = { dataset_uri: await uploadRows(user, ROWS) };
  await setCap(user, 5.1);
  const { accepted, refused } = await submitAtOnce(users, AT_ONCE, "/api/jobs/audit", body);
  expect([accepted.length, refused.length]).toEqual([25, 75]);
  for (const { status, body: answer } of refused) {
    expect(status).toBe(402);
    expect(answer.error).toMatchObject({
      code: "budget_exhausted",
      details: { cap_usd: 5.1, spent_usd: 0, committed_usd: 5, expected_usd: 0.2 },
    });
  }
  // A response has a warning if the tenant's costs, including the submitted job, are at least 80 %
  // of the cap: 4.08 USD. Each job adds 0.20 USD, so only the last five jobs get the warning, at
  // 4.20 to 5.00 USD.
  const warned = accepted.filter(({ warnings }) => warnings?.some(isWarning));
  expect(warned.length).toBe(5);
  await doJobs(user, worker, 25, { rows_processed: ROWS });
  expect(await readBudget(user)).toMatchObject({
    state: "warning",
    spent_usd: 5,
    committed_usd: 0,
    remaining_usd: 0.1,
  });
  expect((await user.call("POST", "/api/jobs/audit", body)).status).toBe(402);
  worker.stopHeartbeats();
}, 120_000);

const isWarning = ({ code }: { code: string }): boolean => code === "budget_warning";

test.each([
  ["first", undefined],
  ["first-keyed", (n: number) => `key-${n}`],
])(
  "tenant %s: its first budget counts at once on every server",
  async (id, keyOf) => {
    const { user, users, budgetWorker: worker } = await createBudgetTenant(id);
    const body = { dataset_uri: await uploadRows(user, ROWS) };
    // Each server accepts a job while the tenant has no budget. After that, both must apply the
    // tenant's first budget at once.
    for (const each of users) await each.submit("audit", body);
    await setCap(user, 0.1);
    const submit = () => submitAtOnce(users, 2, "/api/jobs/audit", body, keyOf);
    const { refused } = await submit();
    expect(refused.map(({ status, body: { error } }) => [status, error?.details])).toEqual(
      Array(2).fill([402, expect.objectContaining({ cap_usd: 0.1, expected_usd: 0.2 })]),
    );
    await setCap(user, 10);
    expect((await submit()).accepted.length).toBe(2);
    await doJobs(user, worker, 4, { rows_processed: ROWS });
    worker.stopHeartbeats();
  },
  60_000,
);

test("an accepted submission is answered again by its key although the cap is reached", async () => {
  const { user, users, budgetWorker: worker } = await createBudgetTenant("keyed");
  const body = { dataset_uri: await uploadRows(user, ROWS) };
  await setCap(user, 1);
  const submit = () => submitAtOnce(users, AT_ONCE, "/api/jobs/audit", body, (n) => `once-${n}`);
  const first = await submit();
  expect(first.accepted.length).toBe(5);
  const again = await submit();
  expect(again.answers.map(({ status }) => status)).toEqual(
    first.answers.map(({ status }) => status),
  );
  expect(again.accepted).toEqual(first.accepted);
  await doJobs(user, worker, 5, { rows_processed: ROWS });
  expect((await submit()).accepted).toEqual(first.accepted);
  // A refusal is not stored with the idempotency key, so a repeated request is accepted once the
  // cap is raised.
  await setCap(user, 1.2);
  const { accepted } = await submit();
  expect(accepted.length).toBe(6);
  await doJobs(user, worker, 1, { rows_processed: ROWS });
  worker.stopHeartbeats();
}, 120_000);

test("jobs that cost more than estimated exceed the cap by the running jobs only, and no more begin", async () => {
  const { user, users, budgetWorker: worker } = await createBudgetTenant("lying");
  const body = { checkpoint_id: "ckpt" };
  await setCap(user, 1);
  // No evaluation has run yet, so each is estimated at the default of 0.20 USD.
  const { accepted } = await submitAtOnce(users, AT_ONCE, "/api/jobs/evaluate", body);
  expect(accepted.length).toBe(5);
  const submit = () => submitAtOnce(users, 10, "/api/jobs/evaluate", body);
  for (let done = 1; done <= 5; done++) {
    await doJobs(user, worker, 1, { samples_evaluated: 100_000 });
    expect((await submit()).refused.map(({ status }) => status)).toEqual(Array(10).fill(402));
  }
  expect(await readBudget(user)).toMatchObject({
    state: "exhausted",
    spent_usd: 500,
    committed_usd: 0,
    remaining_usd: 0,
  });
  await setCap(user, 650);
  // The last evaluations cost 100 USD each, so the next one is estimated at 100 USD.
  expect((await submit()).accepted.length).toBe(1);
  await doJobs(user, worker, 1, { samples_evaluated: 100 });
  const { entries } = await user.get<{ entries: object[] }>("/api/audit-log");
  expect(entries).toMatchObject([
    { action: "budget_set", before: { cap_usd: 1 }, after: { cap_usd: 650 }, created_by: "user" },
    { action: "budget_set", before: null, after: { cap_usd: 1 }, created_by: "user" },
  ]);
  worker.stopHeartbeats();
}, 120_000);

test("a billed job counts against the cap until it completes", async () => {
  const { user, budgetWorker: worker } = await createBudgetTenant("billed");
  const body = { checkpoint_id: "ckpt" };
  await setCap(user, 1);
  const { job_id: id } = await user.submit("evaluate", body);
  // Make the job's completion fail, so that the job is billed but does not complete. A full object
  // store would have the same effect.
  const allow = await refuse(
    forge,
    "before update on jobs",
    `new.job_id = '${id}' and new.status = 'completed'`,
  );
  await worker.complete(await worker.take(), { metrics: { samples_evaluated: 1_000 } });
  await waitFor("the job to be billed", async () => {
    const billed = "select from billing_records where job_id = $1";
    return (await all(forge.ctx.pool, billed, [id])).length > 0;
  });
  expect(await readBudget(user)).toMatchObject({ spent_usd: 0, committed_usd: 1 });
  expect((await user.call("POST", "/api/jobs/evaluate", body)).status).toBe(402);
  await allow();
  await untilEnded(user, id, 60_000);
  expect(await readBudget(user)).toMatchObject({ spent_usd: 1, committed_usd: 0 });
  worker.stopHeartbeats();
}, 120_000);

test("a cancelled job counts against the cap until it is billed", async () => {
  const { user, budgetWorker: worker } = await createBudgetTenant("failing");
  const body = { checkpoint_id: "ckpt" };
  await setCap(user, 0.3);
  const { job_id: id } = await user.submit("evaluate", body);
  const job = await worker.take();
  // The job ends, but its bill waits for the Temporal worker.
  forge.stack.temporalWorker?.signal("SIGSTOP");
  try {
    await user.post(`/api/jobs/${id}/cancel`, {});
    expect((await worker.fail(job)).status).toBe(200);
    await untilEnded(user, id);
    expect(await readBudget(user)).toMatchObject({ spent_usd: 0, committed_usd: 0.2 });
    expect((await user.call("POST", "/api/jobs/evaluate", body)).status).toBe(402);
  } finally {
    forge.stack.temporalWorker?.signal("SIGCONT");
  }
  await waitFor("its bill", async () => (await readBudget(user)).committed_usd === 0);
  expect((await user.call("GET", `/api/billing/records/${id}`)).status).toBe(200);
  worker.stopHeartbeats();
}, 120_000);

test("a step that would exceed the tenant's cap fails, and runs when the cap is raised", async () => {
  const { user, budgetWorker: worker } = await createBudgetTenant("piping");
  const payload = { dataset_uri: await uploadRows(user, ROWS) };
  await setCap(user, 0.5);
  const step = (name: string) => ({ name, job_type: "audit", payload, optional: name !== "a" });
  const id = await startPipeline(user, { steps: ["a", "b", "c"].map(step), reuse: false });
  await doJobs(user, worker, 2, { rows_processed: ROWS });
  const over = await untilPipeline(user, id);
  const failed = over.steps.filter(({ status }) => status === "failed");
  expect(failed).toMatchObject([{ error_code: "budget_exhausted", job_id: null }]);
  expect((await readBudget(user)).spent_usd).toBe(0.4);
  await setCap(user, 1);
  const more = await startPipeline(user, { steps: [step("a")], reuse: false });
  await doJobs(user, worker, 1, { rows_processed: ROWS });
  expect(await untilPipeline(user, more)).toMatchObject({ status: "completed", cost_usd: 0.2 });
  worker.stopHeartbeats();
}, 120_000);

slowTest(
  "a deployment counts against the cap at every moment between its submission and its stop",
  async () => {
    const { user, budgetWorker: worker } = await createBudgetTenant("deploying");
    await setCap(user, 100);
    const { job_id: jobId } = await user.submit("deploy", { checkpoint_id: "ckpt" });
    const { committed_usd: expected } = await readBudget(user);
    expect(expected).toBeGreaterThan(0);
    const job = await worker.take();
    await forge.stack.temporalWorker?.kill();
    await worker.complete(job, { result: { inference_url: "http://127.0.0.1:9/v1" } });
    // Bill the deployment without activating it, as if the Temporal worker had been killed in
    // between.
    const attempt = { jobId, attempt: 1, requestId: "r" };
    await billJob(forge.ctx, attempt, await requireBillable(forge.ctx, attempt));
    expect((await readBudget(user)).committed_usd).toBeCloseTo(expected, 2);
    await forge.stack.startTemporalWorker();
    const ended = await untilEnded(user, jobId);
    const { committed_usd: committed, spent_usd: spent } = await readBudget(user);
    expect(committed + spent).toBeCloseTo(expected, 2);
    await user.post(`/api/deployments/${ended.result?.deployment_id}/stop`, {});
    expect((await readBudget(user)).committed_usd).toBe(0);
    await waitFor("it to be over", async () => {
      const left = await all(forge.ctx.pool, "select from deployments where status <> 'stopped'");
      return left.length === 0;
    });
    worker.stopHeartbeats();
  },
  120_000,
);
