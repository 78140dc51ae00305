import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Answer } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { type Checkpoint, recordCheckpoint } from "../../services/jobs/leases";
import { logOf } from "../support/agent-jobs";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { pathsBelow } from "../support/paths-below";
import { createTenant } from "../support/tenants";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

const MAX_LOG = 100_000;
let forge: Forge;
let worker: TestWorker;

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_MAX_LOG_BYTES: String(MAX_LOG),
      FORGE_CANCEL_GRACE_S: "60",
      FORGE_SWEEP_AFTER_S: "1",
      FORGE_SWEEP_INTERVAL_S: "0.5",
    },
    { own: ["server"] },
  );
  worker = await forge.worker("w");
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

interface Dispatched extends DispatchedJob {
  inputs: { param: string; files?: { path: string; url: string; size_bytes: number }[] }[];
  resume_from: { name: string; url: string; attempt: number } | null;
}

const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");

async function begin(type = "audit", body: object = {}): Promise<Dispatched> {
  const bodies: Record<string, object> = {
    audit: { dataset_uri: "s3://bucket/data.parquet" },
    train: { dataset_id: "d", model: "m" },
  };
  await forge.user.submit(type, { ...bodies[type], ...body });
  return (await worker.take()) as Dispatched;
}

/** Sends a request for an attempt, with bytes as its body. */
async function send(
  method: string,
  path: string,
  job: { attempt: number },
  body: Buffer | string | undefined,
  headers: Record<string, string> = {},
  workerId = worker.id,
): Promise<Answer<Record<string, unknown>>> {
  const query = `worker_id=${workerId}&attempt=${job.attempt}`;
  const response = await fetch(`${forge.stack.apiUrl}${path}?${query}`, {
    method,
    headers: {
      "x-service-api-key": forge.stack.keys.workerKey,
      ...(body === undefined ? {} : { "content-type": "application/octet-stream" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? JSON.parse(text) : { text },
  };
}

const append = (job: Dispatched, from: number, text: string): ReturnType<typeof send> =>
  send("PATCH", `/worker/jobs/${job.job_id}/log`, job, text, {
    "content-range": `bytes ${from}-${from + Buffer.byteLength(text) - 1}/*`,
  });

const put = (
  job: Dispatched,
  path: string,
  body: Buffer | string,
  headers: Record<string, string> = {},
): ReturnType<typeof send> =>
  send("PUT", `/worker/jobs/${job.job_id}/artifacts/${path}`, job, body, headers);

async function finish(job: Dispatched): Promise<void> {
  await worker.complete(job);
  await untilEnded(forge.user, job.job_id);
}

describe("the log", () => {
  test("grows by parts; repeated or overlapping parts are stored once", async () => {
    const job = await begin();
    expect(await append(job, 0, "one\n")).toMatchObject({
      status: 202,
      body: { length: 4, cancelled: false },
    });
    expect((await append(job, 0, "one\n")).body).toMatchObject({ length: 4 });
    expect((await append(job, 0, "one\ntwo\n")).body).toMatchObject({ length: 8 });
    expect((await append(job, 2, "e\n")).body).toMatchObject({ length: 8 });
    expect(await logOf(forge.user, job.job_id)).toBe("one\ntwo\n");
    await finish(job);
  });

  test("a part beyond its end gets the offset to continue from", async () => {
    const job = await begin();
    const empty = await append(job, 7, "late");
    expect([empty.status, empty.headers.get("range")]).toEqual([416, null]);
    await append(job, 0, "12345");
    const beyond = await append(job, 7, "late");
    expect([beyond.status, beyond.headers.get("range")]).toEqual([416, "bytes=0-4"]);
    await finish(job);
  });

  test.each([
    ["no Content-Range", {}, "Content-Range"],
    ["a reversed one", { "content-range": "bytes 5-2/*" }, "Content-Range"],
    ["one for fewer bytes than sent", { "content-range": "bytes 0-1/*" }, "Content-Range"],
    ["one for more", { "content-range": "bytes 0-9/*" }, "Content-Range"],
  ])("with %s is refused", async (_what, headers, param) => {
    const job = await begin();
    const path = `/worker/jobs/${job.job_id}/log`;
    const answer = await send("PATCH", path, job, "four", headers as Record<string, string>);
    expect(answer).toMatchObject({ status: 400, body: { error: { param } } });
    await finish(job);
  });

  test("has a maximum size", async () => {
    const job = await begin();
    expect((await append(job, 0, "x".repeat(MAX_LOG))).status).toBe(202);
    expect(await append(job, MAX_LOG, "y")).toMatchObject({
      status: 413,
      body: { error: { code: "log_too_large" } },
    });
    await finish(job);
  });

  test("reports a cancel", async () => {
    const job = await begin();
    await forge.user.post(`/api/jobs/${job.job_id}/cancel`, {});
    expect((await append(job, 0, "last words")).body).toMatchObject({ cancelled: true });
    await worker.fail(job);
    await untilEnded(forge.user, job.job_id);
    expect(await logOf(forge.user, job.job_id)).toBe("last words");
  });
});

describe("only the attempt that runs on the worker", () => {
  test("sends and fetches: not another number, not another worker, not after the end", async () => {
    const job = await begin();
    await forge.worker("bystander");
    const calls = [
      ["PATCH", "log", "x", { "content-range": "bytes 0-0/*" }],
      ["PUT", "artifacts/x", "x", {}],
      ["PUT", "checkpoints/x", "x", {}],
      ["GET", "inputs/dataset_uri/x", undefined, {}],
    ] as const;
    const refusals = async (attempt: number, workerId?: string): Promise<unknown[]> =>
      await Promise.all(
        calls.map(async ([method, place, body, headers]) => {
          const path = `/worker/jobs/${job.job_id}/${place}`;
          const answer = await send(method, path, { attempt }, body, headers, workerId);
          return [answer.status, (answer.body.error as { code: string }).code];
        }),
      );
    const stale = calls.map(() => [409, "stale_attempt"]);
    expect(await refusals(2)).toEqual(stale);
    expect(await refusals(1, "bystander")).toEqual(stale);
    expect(await refusals(1, "nobody")).toEqual(calls.map(() => [404, "worker_not_registered"]));
    await finish(job);
    expect(await refusals(1)).toEqual(stale);
    expect(await logOf(forge.user, job.job_id)).toBe("");
  });

  test("nothing is revealed about another tenant's job", async () => {
    const other = await createTenant(forge, "other");
    const theirs = other.worker("their-worker");
    await theirs.register();
    await other.user.submit("audit", { dataset_uri: "s3://bucket/data.parquet" });
    const job = (await theirs.take()) as Dispatched;
    const answer = await append(job, 0, "x");
    expect(answer).toMatchObject({ status: 404, body: { error: { code: "job_not_found" } } });
    await theirs.complete(job);
    await untilEnded(other.user, job.job_id);
  });
});

describe("an upload", () => {
  test("whose server died before it recorded the end is found, and blocks nothing", async () => {
    const job = await begin();
    const bytes = "what was sent before the server died";
    const headers = { "x-checksum-sha256": sha256(bytes) };
    expect((await put(job, "kept.bin", bytes, headers)).status).toBe(201);
    // Set the state that a server leaves if it dies after it has moved the file to its final name,
    // but before it has recorded the end of the move.
    await execute(
      forge.ctx.pool,
      `update attempt_files set movers = 1, moving_until = now() + interval '15 minutes'
       where job_id = $1`,
      [job.job_id],
    );
    const asked = await put(job, "kept.bin", "", {
      ...headers,
      "content-range": `bytes */${bytes.length}`,
    });
    expect(asked).toMatchObject({ status: 201, body: { complete: true } });
    await finish(job);
  });

  test("whole or in parts becomes a file of the artifact, with its checksum", async () => {
    const job = await begin("train", { resources: {} });
    const big = Buffer.alloc(50_000, "0123456789");
    expect(
      await put(job, "config.json", "{}", { "x-checksum-sha256": sha256("{}") }),
    ).toMatchObject({ status: 201, body: { complete: true, received: 2, sha256: sha256("{}") } });
    const checked = { "x-checksum-sha256": sha256(big) };
    const part = (from: number, to: number): ReturnType<typeof put> =>
      put(job, "tokenizer/big file.bin", big.subarray(from, to), {
        ...checked,
        "content-range": `bytes ${from}-${to - 1}/50000`,
      });
    const ask = (): ReturnType<typeof put> =>
      put(job, "tokenizer/big file.bin", "", { ...checked, "content-range": "bytes */50000" });
    expect((await ask()).body).toMatchObject({ received: 0, complete: false });
    expect((await part(0, 20_000)).body).toMatchObject({ received: 20_000, complete: false });
    expect((await ask()).body).toMatchObject({ received: 20_000 });
    const gap = await part(30_000, 50_000);
    expect([gap.status, gap.headers.get("range")]).toEqual([416, "bytes=0-19999"]);
    // Send the first part again, and then an overlapping one.
    expect((await part(0, 20_000)).body).toMatchObject({ received: 20_000 });
    expect(await part(10_000, 50_000)).toMatchObject({
      status: 201,
      body: { received: 50_000, complete: true, sha256: sha256(big) },
    });
    // A worker that did not get the last response can ask for the upload's state. The response says
    // that the file is complete.
    expect(await ask()).toMatchObject({ status: 201, body: { complete: true } });
    await finish(job);
    const { artifacts } = await forge.user.get<{ artifacts: { manifest: unknown }[] }>(
      `/api/jobs/${job.job_id}/artifacts`,
    );
    expect(artifacts[0]?.manifest).toMatchObject({
      verified: true,
      files: [
        { path: "config.json", size_bytes: 2 },
        { path: "tokenizer/big file.bin", size_bytes: 50_000, sha256: sha256(big) },
      ],
    });
    const uploads = join(forge.stack.storeDir, "uploads", job.job_id);
    await waitFor("the uploads to be swept", () => !existsSync(uploads));
  });

  test("that is complete, but never got a response, is finished by asking or by its last part", async () => {
    const job = await begin();
    const folder = join(forge.stack.storeDir, "uploads", job.job_id, "attempt-1");
    const ranged = (range: string, body: string): ReturnType<typeof put> =>
      put(job, range.includes("*") ? "asked" : "again", body, {
        "content-range": range,
        "x-checksum-sha256": sha256("twelve bytes"),
      });
    for (const [range, body] of [
      ["bytes */12", ""],
      ["bytes 6-11/12", " bytes"],
    ] as const) {
      await ranged(
        range.includes("*") ? "bytes */12" : "bytes 0-5/12",
        range.includes("*") ? "" : "twelve",
      );
      // Set the state that a server leaves if it ends after all bytes have arrived, while it reads
      // the file for its checksum.
      const name = `artifact-${sha256(range.includes("*") ? "asked" : "again")}-12`;
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, name), "twelve bytes");
      expect(await ranged(range, body)).toMatchObject({ status: 201, body: { complete: true } });
    }
    await finish(job);
  });

  test("of one file, many times at once: one of them is stored whole, without a server error", async () => {
    const job = await begin();
    const bodies = Array.from({ length: 8 }, (_, n) => `${n}`.repeat(100_000));
    const answers = await Promise.all(bodies.map((body) => put(job, "same", body)));
    expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 201));
    const parts = { "content-range": "bytes 0-99999/100000" };
    for (let n = 0; n < 10; n++) {
      const again = await Promise.all(
        bodies.map(() => put(job, `parts-${n}`, "x".repeat(100_000), parts)),
      );
      expect(new Set(again.map(({ status }) => status))).toEqual(new Set([201]));
    }
    await finish(job);
  });

  test("to a path that another file blocks is a conflict", async () => {
    const job = await begin();
    expect((await put(job, "a", "file")).status).toBe(201);
    expect(await put(job, "a/b", "below it")).toMatchObject({
      status: 409,
      body: { error: { code: "upload_conflict" } },
    });
    expect((await put(job, "data.part", "of a user")).status).toBe(201);
    await finish(job);
  });

  test("whose path was refused is no file of the artifact, and does not keep the job from ending", async () => {
    const job = await begin();
    expect((await put(job, "x", "a file")).status).toBe(201);
    expect((await put(job, "x/below", "in the way")).status).toBe(409);
    await finish(job);
    const { artifacts } = await forge.user.get<{ artifacts: { manifest: unknown }[] }>(
      `/api/jobs/${job.job_id}/artifacts`,
    );
    expect(artifacts).toMatchObject([{ manifest: { files: [{ path: "x", size_bytes: 6 }] } }]);
  });

  test("that arrives corrupted is not stored, and may be sent again", async () => {
    const job = await begin();
    const checked = { "x-checksum-sha256": sha256("right") };
    expect(await put(job, "x", "wrong", checked)).toMatchObject({
      status: 400,
      body: { error: { code: "checksum_mismatch" } },
    });
    expect((await put(job, "x", "right", checked)).status).toBe(201);
    await finish(job);
  });

  test.each([
    "..%2Fescape",
    "a/..%2F..%2Fescape",
    "%2Fetc%2Fpasswd",
    "a%5C..%5Cb",
    "a//b",
    "nul%00",
    `${"x".repeat(256)}`,
    ".",
  ])("to %s is refused, and writes nothing", async (path) => {
    const job = await begin();
    const before = pathsBelow(forge.stack.storeDir);
    const answer = await put(job, path, "x");
    expect([400, 404]).toContain(answer.status);
    // Look only for new files, because the sweep may have removed old ones in the meantime.
    const after = pathsBelow(forge.stack.storeDir);
    expect(after.filter((name) => !before.includes(name))).toEqual([]);
    await finish(job);
  });

  test("of two attempts: the lost one's files are not in the artifact", async () => {
    const job = await begin();
    await put(job, "scored.jsonl", "of the first attempt");
    await worker.fail(job, { retryable: true });
    const again = (await worker.take()) as Dispatched;
    expect(again).toMatchObject({ job_id: job.job_id, attempt: 2 });
    await put(again, "other.jsonl", "of the second");
    await finish(again);
    const { artifacts } = await forge.user.get<{
      artifacts: { manifest: { files: { path: string }[] } }[];
    }>(`/api/jobs/${job.job_id}/artifacts`);
    expect(artifacts[0]?.manifest.files.map(({ path }) => path)).toEqual(["other.jsonl"]);
  });
});

test("asking for the state of a complete file never reads it", async () => {
  const job = await begin();
  const file = Buffer.alloc(8 * 1024 * 1024, "x");
  const path = `/worker/jobs/${job.job_id}/artifacts/large.bin`;
  const checked = { "x-checksum-sha256": sha256(file) };
  expect((await send("PUT", path, job, file, checked)).status).toBe(201);
  const readByServer = (): number => {
    const io = readFileSync(`/proc/${forge.stack.server?.pid}/io`, "utf8");
    return Number(/rchar: (\d+)/.exec(io)?.[1]);
  };
  const before = readByServer();
  for (const range of Array(20).fill(`bytes */${file.length}`)) {
    const asked = await send("PUT", path, job, "", { ...checked, "content-range": range });
    expect(asked).toMatchObject({ status: 201, body: { complete: true, received: file.length } });
  }
  for (let n = 0; n < 5; n++) {
    await send("PUT", path, job, "", { ...checked, "content-range": "bytes */0" });
  }
  expect(readByServer() - before).toBeLessThan(file.length);
  await worker.complete(job);
  await untilEnded(forge.user, job.job_id);
});

test("the newest checkpoint is available to the next attempt, until the job has ended", async () => {
  const job = await begin();
  expect(job.resume_from).toBeNull();
  for (const step of [1, 2]) {
    const path = `/worker/jobs/${job.job_id}/checkpoints/step-${step}`;
    expect((await send("PUT", path, job, `state ${step}`)).status).toBe(201);
  }
  const kept = join(forge.stack.storeDir, "runs", job.job_id, "attempt-1");
  expect(readdirSync(kept)).toEqual(["step-2"]);
  await worker.fail(job, { retryable: true });
  const again = (await worker.take()) as Dispatched;
  expect(again.resume_from).toMatchObject({ name: "step-2", attempt: 1, size_bytes: 7 });
  const { url = "" } = again.resume_from ?? {};
  expect((await send("GET", url, again, undefined)).body).toEqual({ text: "state 2" });
  const rest = await send("GET", url, again, undefined, { range: "bytes=6-" });
  expect([rest.status, rest.body]).toEqual([206, { text: "2" }]);
  expect((await send("GET", url.replace("step-2", "step-1"), again, undefined)).status).toBe(404);
  await finish(again);
  const runs = join(forge.stack.storeDir, "runs", job.job_id);
  await waitFor("the checkpoints to be swept", () => !existsSync(runs));
});

test("the next attempt starts from the beginning if the store has lost the checkpoint", async () => {
  const job = await begin();
  const path = `/worker/jobs/${job.job_id}/checkpoints/step`;
  expect((await send("PUT", path, job, "state 1")).status).toBe(201);
  const stored = join(forge.stack.storeDir, "runs", job.job_id, "attempt-1", "step");
  writeFileSync(stored, "st");
  await worker.fail(job, { retryable: true });
  const again = (await worker.take()) as Dispatched;
  expect(again.resume_from).toBeNull();
  await finish(again);
});

test("a checkpoint that is recorded late does not replace a newer one", async () => {
  const job = await begin();
  const { job_id: jobId, attempt } = job;
  const sendStep = (step: number) =>
    send("PUT", `/worker/jobs/${jobId}/checkpoints/step-${step}`, job, `state ${step}`);
  expect((await sendStep(1)).status).toBe(201);
  const noted = await all<{ checkpoint: Checkpoint }>(
    forge.ctx.pool,
    "select checkpoint from attempts where job_id = $1",
    [jobId],
  );
  const { checkpoint } = noted[0] as { checkpoint: Checkpoint };
  expect((await sendStep(3)).status).toBe(201);
  const lease = { job_id: jobId, attempt, checkpoint };
  const late = { ...checkpoint, name: "step-2" };
  expect(await recordCheckpoint(forge.ctx.pool, lease, late)).toBe(false);
  await worker.fail(job, { retryable: true });
  const again = (await worker.take()) as Dispatched;
  expect(again.resume_from).toMatchObject({ name: "step-3" });
  await finish(again);
});

test("an unexpected deployment of a worker is stopped, and only that", async () => {
  await forge.user.submit("deploy", { checkpoint_id: "c" });
  const job = await worker.take();
  const { deployment_id: own } = job.output_ids;
  const commandsFor = async (...deployments: (string | undefined)[]): Promise<unknown> =>
    (await worker.heartbeat({ deployments, job_id: job.job_id })).commands;
  const stopped = [{ type: "stop_deployment", deployment_id: "dep_stray" }];
  // The job's own deployment is healthy, and the job's result is still to come. So Forge must not
  // stop this deployment.
  expect(await commandsFor(own, "dep_stray")).toEqual(stopped);
  await worker.complete(job);
  await untilEnded(forge.user, job.job_id);
  const { commands } = await worker.heartbeat({ deployments: [own, "dep_stray"] });
  expect(commands).toEqual(stopped);
});

describe("inputs", () => {
  const upload = async (key: string): Promise<{ dataset_id: string; dataset_uri: string }> => {
    const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
      method: "POST",
      headers: { "x-service-api-key": key, "content-type": "application/x-ndjson" },
      body: '{"q": "why?"}\n',
    });
    return (await response.json()) as { dataset_id: string; dataset_uri: string };
  };

  test("are the artifacts that the job names and its tenant owns, by id and by URI", async () => {
    const { dataset_id, dataset_uri } = await upload(forge.stack.keys.userKey);
    for (const [type, param, value] of [
      ["train", "dataset_id", dataset_id],
      ["audit", "dataset_uri", dataset_uri],
    ] as const) {
      const job = await begin(type, { [param]: value });
      const [input] = job.inputs;
      expect(input).toMatchObject({ param, files: [{ path: "raw.jsonl", size_bytes: 14 }] });
      const answer = await send("GET", input?.files?.[0]?.url ?? "", job, undefined);
      expect(answer.body).toEqual({ text: '{"q": "why?"}\n' });
      for (const path of ["manifest.json", "..%2Fraw.jsonl", "other"]) {
        const place = `/worker/jobs/${job.job_id}/inputs/${param}/${path}`;
        expect((await send("GET", place, job, undefined)).status).toBe(404);
      }
      await finish(job);
    }
  });

  test("that a worker reports to be in another tenant's folder are not served", async () => {
    const other = await createTenant(forge, "victim");
    const theirs = await upload(other.user.key);
    const job = await begin();
    const uri = theirs.dataset_uri.replace("raw.jsonl", "");
    await worker.complete(job, { artifacts_uri: uri });
    const { result, artifacts_uri } = (await untilEnded(forge.user, job.job_id)) as unknown as {
      result: { dataset_id: string };
      artifacts_uri: string;
    };
    expect(artifacts_uri).toBe(`forge://artifacts/datasets/${result.dataset_id}/`);
    const next = await begin("train", { dataset_id: result.dataset_id });
    expect(next.inputs).toEqual([{ param: "dataset_id", value: result.dataset_id }]);
    await finish(next);
  });

  test("of another tenant look as if they never existed", async () => {
    const other = await createTenant(forge, "stranger");
    const theirs = await upload(other.user.key);
    const byId = await begin("train", { dataset_id: theirs.dataset_id });
    expect(byId.inputs).toEqual([{ param: "dataset_id", value: theirs.dataset_id }]);
    await finish(byId);
    const byUri = await begin("audit", { dataset_uri: theirs.dataset_uri });
    expect(byUri.inputs).toEqual([
      { param: "dataset_uri", value: theirs.dataset_uri, withheld: true },
    ]);
    const place = `/worker/jobs/${byUri.job_id}/inputs/dataset_uri/raw.jsonl`;
    expect((await send("GET", place, byUri, undefined)).status).toBe(404);
    await finish(byUri);
  });
});
