import { readFileSync } from "node:fs";
import { join } from "node:path";
import { jobWorkflowId } from "../../core/workflow-ids";
import { ApiClient } from "../../dev/api-client";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { deploy, servingWorker, stop } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { readMetrics, sampleOf } from "../support/metrics";
import { BYO_DATA, startPipeline, untilPipeline } from "../support/pipelines";

let forge: Forge;
/** URLs of the process that serves the API, and of the process that runs the workflows. */
let api: string;
let worker: string;

const read = (base: string): Promise<string> => readMetrics(base, forge.stack.keys.adminKey);

const until = (base: string, of: string, labels: Record<string, string>, value: number) =>
  waitFor(
    `${of} to be ${value}`,
    async () => (sampleOf(await read(base), of, labels) ?? 0) >= value,
  );

/**
 * Waits until the counts of the two processes add up to at least `value`. The process that delivers
 * an outbox entry counts the delivery, and this may be either process.
 */
const untilCounted = (of: string, labels: Record<string, string>, value: number) =>
  waitFor(`${of} to be ${value} in all`, async () => {
    const counts = [await read(api), await read(worker)].map((text) => sampleOf(text, of, labels));
    return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0) >= value;
  });

beforeAll(async () => {
  forge = await startForge(
    { FORGE_HEARTBEAT_TIMEOUT_S: "5", FORGE_RECONCILE_AFTER_S: "1" },
    { split: true },
  );
  api = forge.stack.apiUrl;
  worker = readFileSync(join(forge.stack.storeDir, "..", "temporal-worker.url"), "utf8");
});

afterAll(async () => {
  await forge?.stop();
});

test("only admins read them", async () => {
  expect(await forge.user.call("GET", "/metrics")).toMatchObject({ status: 403 });
  const anonymous = new ApiClient(api, "");
  expect(await anonymous.call("GET", "/metrics")).toMatchObject({ status: 403 });
});

test("a job is counted at each stage, and waiting jobs by their reason", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await until(api, "forge_queue_jobs", { job_type: "audit", reason: "no_worker" }, 1);
  const before = await read(api);
  expect(
    sampleOf(before, "forge_queue_oldest_seconds", { job_type: "audit", reason: "no_worker" }),
  ).toBeGreaterThan(0);
  expect(sampleOf(before, "forge_jobs_submitted_total", { job_type: "audit" })).toBe(1);

  const box = await forge.worker("box");
  await box.heartbeat();
  const dispatched = await box.take();
  expect((await box.complete(dispatched, { attempt: 7 })).status).toBe(409);
  expect((await box.complete(dispatched)).status).toBe(200);
  await untilEnded(forge.user, job_id);
  await until(api, "forge_attempts_ended_total", { outcome: "completed" }, 1);

  const text = await read(api);
  const route = "POST /api/workers/job_result";
  expect(sampleOf(text, "forge_http_requests_total", { route, status: "200" })).toBe(1);
  expect(sampleOf(text, "forge_http_refusals_total", { route, code: "stale_attempt" })).toBe(1);
  expect(sampleOf(text, "forge_http_request_duration_seconds_count", { route })).toBe(2);
  await untilCounted("forge_attempts_assigned_total", {}, 1);
  expect(sampleOf(text, "forge_handout_wait_seconds_count", { job_type: "audit" })).toBe(1);
  expect(sampleOf(text, "forge_heartbeat_batch_size_sum")).toBe(1);
  await untilCounted("forge_temporal_calls_total", { call: "start", result: "taken", code: "" }, 1);
  await until(worker, "forge_finish_seconds_count", { part: "complete" }, 1);
});

test("a worker that is lost is counted with the reason", async () => {
  await untilCounted("forge_workers_lost_total", { reason: "silent" }, 1);
  await until(api, "forge_workers", { status: "dead" }, 1);
});

test("each loop shows its last success, and the process its state", async () => {
  const text = await read(api);
  const lastOf = (loop: string): number =>
    sampleOf(text, "forge_loop_last_success_timestamp_seconds", { loop }) ?? 0;
  for (const loop of ["relay", "scheduler", "fleet-monitor", "pipeline-starter"]) {
    expect(Date.now() / 1000 - lastOf(loop)).toBeLessThan(60);
  }
  expect(sampleOf(text, "process_resident_memory_bytes")).toBeGreaterThan(1e7);
  expect(sampleOf(text, "forge_database_connections", { state: "waiting" })).toBe(0);
});

test("a poll that waits is counted while it waits, and so is the process's event loop", async () => {
  const box = await forge.worker("waits");
  const poll = box.next(30);
  await until(api, "forge_polls_parked", {}, 1);
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await poll;
  if (!dispatched) throw new Error("the worker got no job");
  await box.complete(dispatched);
  await untilEnded(forge.user, job_id);
  const text = await read(api);
  expect(sampleOf(text, "forge_polls_parked")).toBe(0);
  expect(sampleOf(text, "forge_match_pass_seconds_count")).toBeGreaterThan(0);
  expect(sampleOf(text, "nodejs_eventloop_lag_p99_seconds")).toBeGreaterThan(0);
  expect(sampleOf(text, "forge_database_connections", { state: "idle" })).toBeGreaterThan(0);
});

test("a restarted workflow is counted as repaired", async () => {
  const box = await forge.worker("mends");
  box.startHeartbeats();
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await box.take();
  const workflow = forge.ctx.temporal.workflow.getHandle(jobWorkflowId(job_id));
  await waitFor("its workflow to run", async () => {
    const entries = await all(forge.ctx.pool, "select from outbox where job_id = $1", [job_id]);
    return entries.length === 0;
  });
  await workflow.terminate("a slip of the mouse");
  await untilCounted("forge_workflow_repairs_total", { repair: "gone" }, 1);
  await box.complete(dispatched);
  await untilEnded(forge.user, job_id);
  box.stopHeartbeats();
});

/** Rows that a healthy server never has. Written with SQL, bypassing triggers and foreign keys. */
const UNHEALTHY = `
  insert into outbox (job_id, attempt, due_at) select job_id, 9, 'infinity' from jobs limit 1;
  insert into stuck_writes (workflow_id, activity, error, tries, since)
    values ('job:of-nobody', 'finishJob', 'no disk', 10, now() - interval '1 hour');
  insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                    timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, rate_card,
                    request_id, status, attempts, moved_at)
    select 'job_unfinished', user_id, created_by, job_type, '{}', '{}', '{}', '{}', 0, 60, 3, 0, '{}', 0, '{}', 'r',
           'running', 1, 'infinity' from jobs where status = 'completed' limit 1;
  insert into attempts select (jsonb_populate_record(a, jsonb_build_object('job_id', 'job_unfinished',
    'ended_at', now() - interval '1 hour'))).* from attempts a where outcome = 'completed' limit 1;
  update pipelines set asked = told + 1, due_at = 'infinity' where status = 'waiting_approval';
  update deployments set active_at = now() - interval '70 days', asked = told + 1,
                         tell_at = 'infinity'`;
const HEALTHY_AGAIN = `
  delete from outbox where attempt = 9;
  update pipelines set asked = told;
  update deployments set asked = told, tell_at = now();
  delete from stuck_writes;
  delete from attempts where job_id = 'job_unfinished';
  delete from jobs where job_id = 'job_unfinished'`;

test("stuck rows in the database are counted, with their age", async () => {
  const serves = await servingWorker(forge, "serves");
  const { deployment_id: id } = await deploy(forge.user);
  const pipeline = await startPipeline(forge.user, { ...BYO_DATA, approvals: ["audit"] });
  await untilPipeline(forge.user, pipeline, ["waiting_approval"]);
  const write = (sql: string) =>
    forge.ctx.pool.query(
      `set session_replication_role = replica; ${sql}; reset session_replication_role`,
    );
  await write(UNHEALTHY);
  try {
    const HOUR_S = 3_600;
    const expected: [string, Record<string, string>, number][] = [
      ["forge_outbox_rows", {}, 1],
      ["forge_outbox_oldest_seconds", {}, 1],
      ["forge_undelivered_wakes", { of: "pipelines" }, 1],
      ["forge_undelivered_wakes", { of: "deployments" }, 1],
      ["forge_stuck_writes", { activity: "finishJob" }, 1],
      ["forge_finishing_jobs", {}, 1],
      ["forge_finishing_oldest_seconds", {}, HOUR_S],
      ["forge_pipelines", { status: "waiting_approval" }, 1],
      ["forge_deployments", { status: "active" }, 1],
      ["forge_billing_months_behind", { of: "deployments" }, 1],
      ["forge_billing_export_lines", {}, 1],
      ["forge_billing_export_oldest_seconds", {}, 1],
    ];
    for (const [name, labels, least] of expected) await until(api, name, labels, least);
  } finally {
    await write(HEALTHY_AGAIN);
  }
  await forge.user.post(`/api/pipelines/${pipeline}/cancel`, {});
  await stop(forge.user, id);
  await serves.die();
});

test("the process that runs workflows shows Temporal's metrics, the other does not", async () => {
  expect(await read(worker)).toMatch(/^temporal_\w+\{.*\} \d/m);
  expect(await read(api)).not.toMatch(/^temporal_/m);
});

test("values invented by clients create no series", async () => {
  for (const path of ["/api/nothing", "/api/jobs/job_made_up", "/api/jobs/job_made_up_too"]) {
    await forge.user.call("GET", path);
  }
  const text = await read(api);
  expect(text).not.toContain("made_up");
  expect(
    sampleOf(text, "forge_http_requests_total", { route: "GET /api/jobs/:job_id", status: "404" }),
  ).toBe(2);
  expect(sampleOf(text, "forge_http_requests_total", { route: "none", status: "404" })).toBe(1);
});

test("the document for operators lists exactly these metrics", async () => {
  const operating = readFileSync(join(checkoutRoot(), "docs", "operating.md"), "utf8");
  const both = `${await read(api)}\n${await read(worker)}`;
  const served = [...both.matchAll(/^# TYPE (forge_\w+)/gm)].map(([, name]) => name ?? "");
  const section = operating.split("## Metrics\n")[1]?.split("\n## ")[0] ?? "";
  const named = [...section.matchAll(/`(forge_\w+)`/g)].map(([, name]) => name ?? "");
  expect([...new Set(served)].sort()).toEqual(named.sort());
});
