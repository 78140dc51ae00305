/**
 * Ended jobs move to archive tables (services/jobs/archive.ts). The API's responses must stay the
 * same.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { artifactPrefix, billingRecordKey } from "../../core/artifacts/artifacts";
import type { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { EventStream } from "../support/event-stream";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import {
  BYO_DATA,
  readPipeline,
  startPipeline,
  stepOf,
  untilPipeline,
  usualWork,
  WorkerPool,
} from "../support/pipelines";
import { createTenant } from "../support/tenants";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;

beforeAll(async () => {
  const soon = { FORGE_SWEEP_AFTER_S: "0.2", FORGE_SWEEP_INTERVAL_S: "0.2" };
  forge = await startForge({ ...soon, FORGE_ARCHIVE_AFTER_S: "0.2" });
});

// Checks the invariants, which include those of archived jobs.
afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

const idsIn = async (table: string): Promise<string[]> => {
  const rows = await all<{ job_id: string }>(
    forge.ctx.pool,
    `select distinct job_id from ${table} order by job_id`,
  );
  return rows.map(({ job_id }) => job_id);
};

const APPLIED =
  "update migrations set applied_at = now() - $1::interval where name like '%archived_jobs.sql'";

/** Turns archiving on until these jobs are archived. The server may archive other jobs, too. */
async function archive(jobIds: string[]): Promise<void> {
  await execute(forge.ctx.pool, APPLIED, ["8 days"]);
  await waitFor("the jobs to be archived", async () => {
    const archived = await idsIn("archived_jobs");
    return jobIds.every((id) => archived.includes(id));
  });
  await execute(forge.ctx.pool, APPLIED, ["6 days"]);
  for (const table of ["jobs", "attempts", "attempt_files"]) {
    const left = await idsIn(table);
    expect(left.filter((id) => jobIds.includes(id))).toEqual([]);
  }
}

/** Runs the next job to its end, with a file, a log and a metric. */
async function complete(worker: TestWorker) {
  const job = await worker.take();
  const { job_id, attempt } = job;
  await worker.upload(job, "rows.jsonl", '{"a": 1}\n');
  await worker.log(job, "some line\n");
  const metrics = { loss: 0.25 };
  await worker.heartbeat({ status: "busy", job_id, attempt, progress: 0.5, metrics });
  await worker.complete(job, { artifacts_uri: null, logs_uri: null });
  return job;
}

/** The response's status and text. */
async function answerOf({ baseUrl, key }: ApiClient, path: string) {
  const response = await fetch(`${baseUrl}${path}`, { headers: { "x-service-api-key": key } });
  return { path, status: response.status, text: await response.text() };
}

/** Reads the events of a stream that follow the event with the id `after`. */
async function streamed(api: ApiClient, path: string, after: string): Promise<unknown[]> {
  const stream = await EventStream.open(api, path, after);
  const isOver = () =>
    stream.events.some(({ event, data }) => event === "ready" || data.status === "completed");
  await waitFor("the events", isOver);
  stream.close();
  return stream.events;
}

test("answers about archived jobs do not change", async () => {
  const { user, worker: workerOf } = await createTenant(forge, "archiving");
  const { user: stranger } = await createTenant(forge, "stranger");
  const worker = workerOf("archiving-worker");
  await worker.register();
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const { job_id: done } = await user.submit("audit", { ...AUDIT, tags: ["kept"], notes: "old" });
  const { attempt, output_ids } = await complete(worker);
  const { job_id: failed } = await user.submit("generate", { domain: "law", size: 10 });
  await worker.fail(await worker.take());
  const { job_id: cancelled } = await user.submit("train", { dataset_id: "d", model: "m" });
  await user.call("POST", `/api/jobs/${cancelled}/cancel`);
  const ended = [done, failed, cancelled];
  for (const id of ended) await untilEnded(user, id);
  // Submit a job that stays unfinished, so that lists contain jobs of both tables.
  const { job_id: open } = await user.submit("train", { dataset_id: "d", model: "m" });
  const until = new Date().toISOString();
  const paths = [
    ...ended.map((id) => `/api/jobs/${id}`),
    ...ended.map((id) => `/api/jobs/${id}/attempts`),
    ...ended.map((id) => `/api/jobs/${id}/artifacts`),
    `/api/jobs/${done}/logs?attempt=${attempt}`,
    `/api/jobs/${done}/metrics?attempt=${attempt}`,
    "/api/jobs",
    "/api/jobs?limit=2",
    "/api/jobs?status=failed",
    "/api/jobs?status=completed&job_type=audit",
    "/api/jobs?tag=kept",
    `/api/jobs?q=${done}`,
    `/api/jobs?worker_id=${worker.id}`,
    `/api/jobs?completed_after=${since}`,
    `/api/jobs/counts?ended_after=${since}`,
    `/api/jobs/throughput?since=${since}&until=${until}`,
    "/api/billing/records",
    `/api/billing/records/${done}`,
    `/api/billing/export?period=${until.slice(0, 7)}`,
    "/api/billing/daily",
    "/api/artifacts",
  ];
  const dataset = output_ids.dataset_id;
  const answers = async () => ({
    one: await Promise.all(paths.map((path) => answerOf(user, path))),
    stream: await streamed(user, `/api/jobs/${done}/events`, "0"),
    all: await streamed(user, "/api/events", "1"),
    lineage: await answerOf(user, `/api/artifacts/${dataset}/lineage`),
    admin: (await answerOf(forge.admin, "/api/jobs?user_id=archiving")).text,
    strange: (await answerOf(stranger, `/api/jobs/${done}`)).status,
  });
  const before = await answers();
  expect(before.one.filter(({ status }) => status !== 200)).toEqual([]);
  expect(before.stream.length).toBeGreaterThan(3);
  expect(before.strange).toBe(404);
  await archive(ended);
  expect(await answers()).toEqual(before);
  await user.call("POST", `/api/jobs/${open}/cancel`);
});

test("requests to change an archived job get the answers that they got before", async () => {
  const worker = await forge.worker("late-worker");
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  const send = {
    result: () => worker.complete(job),
    "another result": () => worker.fail(job),
    "a file": () => worker.upload(job, "late.txt", "late"),
    cancel: () => forge.user.call("POST", `/api/jobs/${jobId}/cancel`),
  };
  const answers = async () => {
    const given: Record<string, unknown> = {};
    for (const [name, request] of Object.entries(send)) {
      const answer = await request();
      given[name] =
        typeof answer === "number" ? answer : [answer.status, withoutRequestId(answer.body)];
    }
    return given;
  };
  await worker.complete(job);
  await untilEnded(forge.user, jobId);
  const before = await answers();
  await archive([jobId]);
  expect(await answers()).toEqual(before);
  const retried = await forge.user.post<{ job_id: string }>(`/api/jobs/${jobId}/retry`, {});
  expect(retried).toMatchObject({ retried_from: jobId, status: "pending" });
  await worker.complete(await worker.take());
  expect((await untilEnded(forge.user, retried.job_id)).status).toBe("completed");
});

const withoutRequestId = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body, (name, value) => (name === "request_id" ? undefined : value)));

test("a pipeline keeps its jobs until it ends, and is resumed from archived ones", async () => {
  const crew = await new WorkerPool(forge).start(1);
  const id = await startPipeline(forge.user, {
    ...BYO_DATA,
    skip: ["evaluate", "deploy"],
    approvals: ["train"],
  });
  const waiting = await untilPipeline(forge.user, id, ["waiting_approval"]);
  const audit = stepOf(waiting, "audit").job_id ?? "";
  // While the pipeline waits, its audit job must not be archived. Archive a job that ended later:
  // jobs are archived in the order of their ends, so the archiver has then skipped the audit job.
  const { job_id: other } = await forge.user.submit("audit", AUDIT);
  await untilEnded(forge.user, other);
  await archive([other]);
  expect(await idsIn("jobs")).toContain(audit);
  crew.work = () => ({ error: "out of luck" });
  await forge.user.post(`/api/pipelines/${id}/approve`, {});
  const failed = await untilPipeline(forge.user, id);
  expect(failed.status).toBe("failed");
  await archive(failed.steps.flatMap(({ job_id }) => job_id ?? []));
  expect(await readPipeline(forge.user, id)).toEqual(failed);
  crew.work = usualWork;
  await forge.user.post(`/api/pipelines/${id}/resume`, {});
  await untilPipeline(forge.user, id, ["waiting_approval"]);
  await forge.user.post(`/api/pipelines/${id}/approve`, {});
  const resumed = await untilPipeline(forge.user, id);
  expect(resumed.status).toBe("completed");
  expect(stepOf(resumed, "audit")).toEqual(stepOf(failed, "audit"));
  await crew.stop();
});

test("a job that Postgres refuses to archive does not keep others from being archived", async () => {
  const worker = await forge.worker("refused-worker");
  const { pool } = forge.ctx;
  const ids: string[] = [];
  for (let n = 0; n < 3; n++) ids.push((await forge.user.submit("audit", AUDIT)).job_id);
  for (const _ of ids) await worker.complete(await worker.take());
  for (const id of ids) await untilEnded(forge.user, id);
  const [first = "", ...others] = ids;
  await execute(pool, "insert into archived_jobs select * from jobs where job_id = $1", [first]);
  await archive(others);
  expect(await idsIn("jobs")).toContain(first);
  await execute(pool, "delete from archived_jobs where job_id = $1", [first]);
  await archive(ids);
});

test("nothing is archived in the first week after the migration", async () => {
  const worker = await forge.worker("early-worker");
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  await worker.complete(await worker.take());
  await untilEnded(forge.user, jobId);
  await waitFor("its files to be swept", async () => {
    const swept = "select from jobs where job_id = $1 and swept_at is not null";
    return (await all(forge.ctx.pool, swept, [jobId])).length === 1;
  });
  for (const nth of ["a", "another"]) {
    const before = await lastRun();
    await waitFor(`${nth} run of the archiver`, async () => (await lastRun()) !== before);
  }
  expect(await idsIn("jobs")).toContain(jobId);
  await archive([jobId]);
});

/** The line of `/metrics` with the time of the archiver's last successful run. */
async function lastRun(): Promise<string | undefined> {
  const series = 'forge_loop_last_success_timestamp_seconds{loop="archiver"}';
  const { text } = await answerOf(forge.admin, "/metrics");
  return text.split("\n").find((line) => line.startsWith(series));
}

test("lost files of archived jobs are written again after the operator's statement", async () => {
  const { user, worker: workerOf } = await createTenant(forge, "losing");
  const worker = workerOf("losing-worker");
  await worker.register();
  const { job_id: jobId } = await user.submit("audit", AUDIT);
  const { output_ids } = await complete(worker);
  await untilEnded(user, jobId);
  await archive([jobId]);
  const { stack, ctx } = forge;
  const files = [
    join(stack.storeDir, billingRecordKey("losing", jobId)),
    join(stack.storeDir, artifactPrefix("audit", output_ids.dataset_id ?? ""), "manifest.json"),
  ];
  const contents = () => files.map((file) => JSON.parse(readFileSync(file, "utf8")));
  const before = contents();
  for (const file of files) rmSync(file);
  // The same statement as in docs/operating.md.
  await execute(ctx.pool, "update archived_jobs set swept_at = null where swept_at is not null");
  await waitFor("the files to be there again", () => files.every((file) => existsSync(file)));
  expect(contents()).toEqual(before);
});

test("an archived job's row has the columns of its first table, in their order", async () => {
  const columnsOf = (table: string) =>
    all(
      forge.ctx.pool,
      `select attname, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
      [table],
    );
  for (const table of ["jobs", "attempts"]) {
    expect(await columnsOf(`archived_${table}`)).toEqual(await columnsOf(table));
  }
});
