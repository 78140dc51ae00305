// Tests `Forge` in Node with a real stack. test/e2e/sdk-typescript.test.ts runs this file.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import {
  BadRequestError,
  ConflictError,
  Forge,
  JobFailedError,
  NotFoundError,
  UnprocessableEntityError,
  WaitTimeoutError,
} from "@forge/sdk";

const DATA = '{"question": "1 + 1?", "answer": "2"}\n'.repeat(20_000);
const client = new Forge();

async function jobs() {
  const idempotencyKey = crypto.randomUUID();
  const params = { domain: "law", num_samples: 10, tags: ["sdk-ts"] };
  const job = await client.generate(params, { idempotencyKey });
  assert.ok(["pending", "running"].includes(job.status));
  assert.equal((await client.generate(params, { idempotencyKey })).job_id, job.job_id);
  const other = client.generate({ ...params, num_samples: 11 }, { idempotencyKey });
  await assert.rejects(other, UnprocessableEntityError);
  const heard = [];
  const done = await job.wait({ timeout: 60, onEvent: (event) => heard.push(event.raw_status) });
  assert.equal(done.status, "completed");
  const statuses = [];
  for await (const event of client.jobs.events(job)) statuses.push(event.raw_status);
  assert.deepEqual([statuses[0], statuses.at(-1)], ["pending", "completed"]);
  assert.deepEqual(heard, statuses.slice(0, heard.length));
  const [artifact] = await client.getArtifacts(job.job_id);
  assert.equal(artifact.artifact_id, done.result.dataset_id);
  assert.equal((await client.billing.record(job)).total_cost_usd, 0.3);
  assert.deepEqual(
    (await client.jobs.attempts(job)).map(({ outcome }) => outcome),
    ["completed"],
  );
  const train = await client.train({ model: "m", dataset_id: artifact.artifact_id });
  assert.equal(train.payload.epochs, 3);
  assert.equal(JSON.parse(JSON.stringify(train)).raw_status, train.raw_status);
  await Promise.all([1, 2, 3].map(() => client.audit({ dataset_uri: "s3://b/k", tags: ["many"] })));
  const listed = await client.jobs.list({ tag: "many", pageSize: 1 }).toArray();
  assert.equal(listed.length, 3);
  return job;
}

async function refusals(job) {
  await assert.rejects(client.generate({ domain: "law", num_samples: -1 }), (error) => {
    assert.ok(error instanceof BadRequestError);
    return error.param && error.request_id && error.status === 400;
  });
  await assert.rejects(job.cancel(), ConflictError);
  await assert.rejects(client.status("job_that_never_was"), NotFoundError);
  const failing = await client.audit({ dataset_uri: "s3://b/fail", notes: "fail" });
  await assert.rejects(failing.wait({ timeout: 60 }), (error) => {
    assert.ok(error instanceof JobFailedError);
    return error.message === "asked to fail" && error.job.error_code === "job_error";
  });
}

async function givingUp() {
  const job = await client.audit({ dataset_uri: "s3://b/k", resources: { gpu: 1000 } });
  await assert.rejects(client.wait(job.job_id, { timeout: 1 }), WaitTimeoutError);
  const gone = new Error("gone home");
  const controller = new AbortController();
  const onEvent = () => controller.abort(gone);
  await assert.rejects(job.wait({ signal: controller.signal, onEvent }), gone);
  assert.equal((await job.refresh()).pending_reason.code, "no_worker_fits");
  assert.equal((await job.cancel()).error_code, "cancelled");
}

async function log() {
  const job = await client.evaluate({ model_id: "ckpt_1", resources: { tags: ["writes-log"] } });
  const lines = [];
  for await (const line of job.logs({ follow: true })) lines.push(line);
  assert.deepEqual(lines, ["first", "secönd", "last, without an end"]);
  assert.equal((await job.wait({ timeout: 30 })).status, "completed");
  assert.equal(await job.logs(), lines.join("\n"));
  assert.equal(await job.logs({ tailBytes: 3 }), "end");
  const whole = await client.jobs.logRange(job);
  assert.equal(new TextDecoder().decode(whole.bytes), lines.join("\n"));
  assert.deepEqual([whole.start, whole.total], [0, whole.bytes.length]);
  const part = await client.jobs.logRange(job, { start: 2, end: 5 });
  assert.deepEqual(part, { start: 2, total: whole.total, bytes: whole.bytes.slice(2, 5) });
  const tail = await client.jobs.logRange(job, { tailBytes: 3 });
  assert.deepEqual([tail.start, tail.total], [whole.total - 3, whole.total]);
  const beyond = await client.jobs.logRange(job, { start: whole.total });
  assert.deepEqual([beyond.start, beyond.bytes.length], [whole.total, 0]);
}

async function files() {
  await writeFile("up.jsonl", DATA);
  const told = [];
  const onProgress = ({ done_bytes }) => told.push(done_bytes);
  const dataset = await client.datasets.upload("up.jsonl", null, { onProgress });
  assert.deepEqual([dataset.num_rows, told.at(-1)], [20_000, DATA.length]);
  const id = dataset.dataset_id;
  const pulled = await client.artifacts.pull(id, "down");
  assert.ok(pulled.verified);
  assert.equal(await readFile("down/raw.jsonl", "utf8"), DATA);
  assert.ok((await client.artifacts.verifyLocal(id, "down")).ok);
  assert.ok((await client.artifacts.verify(id)).ok);
  assert.equal(
    await readFile(await client.artifacts.download(id, "raw.jsonl", "one"), "utf8"),
    DATA,
  );
  assert.ok((await stat(await client.artifacts.archive(id, "all.tar"))).size > DATA.length);
  assert.equal((await client.artifacts.preview(id)).num_rows, 20_000);
  assert.ok((await client.artifacts.lineage(id)).nodes.some((node) => node.id === id));
  assert.ok((await client.artifacts.delete(id)).deleted_at);
}

async function pipelines() {
  const seen = [];
  const started = await client.pipelines.run(
    "synthetic",
    { generate: { domain: "law", num_samples: 10 }, train: { model: "m" } },
    {
      skip: ["audit", "distill"],
      gates: [{ step: "evaluate", condition: "scores.overall >= 0.7" }],
      approvals: ["deploy"],
    },
  );
  const options = { pollInterval: 0.3, timeout: 60 };
  const onUpdate = ({ status }) => seen.push(status);
  const id = started.pipeline_id;
  const waiting = await client.pipelines.wait(id, { ...options, onUpdate, stopAtApproval: true });
  assert.equal(waiting.status, "waiting_approval");
  assert.ok(seen.length > 1);
  await client.pipelines.approve(id, "deploy");
  const done = await client.pipelines.wait(id, options);
  assert.ok(done.cost_usd > 0 && done.steps.find(({ name }) => name === "evaluate").gate.passed);
  const [deployment] = await client.deployments.list({ status: "active", limit: 1 }).toArray();
  const stopped = await client.deployments.stop(deployment.deployment_id);
  assert.ok(["stopping", "stopped"].includes(stopped.status));
}

async function theRest() {
  assert.equal((await client.service.ping()).scope, "user");
  assert.ok((await client.service.isAlive()) && (await client.service.isReady()).ready);
  assert.ok((await client.billing.summary()).total_cost_usd > 0);
  const estimate = await client.billing.estimate("audit", { dataset_uri: "s3://b/k" });
  assert.ok(estimate.high_usd >= 0);
  assert.equal((await client.billing.setBudget(1000)).budget.cap_usd, 1000);
  assert.equal((await client.billing.setBudget(null)).budget.cap_usd, null);
  assert.match(await client.billing.export(), /\n/);
  assert.equal((await client.billing.rates()).rate_card, "default");
  const key = await client.apiKeys.create("sdk-ts", { scope: "worker" });
  const keys = await client.apiKeys.list().toArray();
  assert.ok(key.key && keys.some(({ key_id }) => key_id === key.key_id));
  assert.ok((await client.apiKeys.revoke(key.key_id)).revoked);
  const [worker] = await client.workers.list({ limit: 1 }).toArray();
  assert.equal((await client.workers.get(worker.worker_id)).bootstrap, null);
}

const first = await jobs();
await Promise.all([refusals(first), givingUp(), log(), files(), pipelines()]);
await theRest();
console.log("all right");
