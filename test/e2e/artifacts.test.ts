import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import {
  type Artifact,
  artifactOf,
  download,
  type Lineage,
  manifestErrors,
  sha256,
} from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded, untilRetried } from "../support/jobs";
import { createTenant } from "../support/tenants";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

beforeAll(async () => {
  forge = await startForge({ FORGE_SWEEP_AFTER_S: "0.5", FORGE_SWEEP_INTERVAL_S: "0.3" });
  worker = await forge.worker("w");
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

const ROWS = '{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n{"a":3,"b":"z"}\n';

/** Runs a job of one attempt that uploads these files and reports this result. */
async function make(
  type: string,
  body: object,
  files: Record<string, string | Buffer>,
  result: object = {},
): Promise<Artifact> {
  const { job_id } = await forge.user.submit(type, body);
  const job = await worker.take();
  for (const [path, content] of Object.entries(files)) {
    expect(await worker.upload(job, path, content)).toBe(201);
  }
  await worker.complete(job, { result, artifacts_uri: null });
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed" });
  return await artifactOf(forge.user, job_id);
}

/** Uploads a dataset. @returns its id. */
async function upload(tenant: ApiClient): Promise<string> {
  const response = await fetch(`${tenant.baseUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": tenant.key, "content-type": "application/x-ndjson" },
    body: ROWS,
  });
  return ((await response.json()) as Artifact).artifact_id;
}

const get = (id: string, rest = ""): Promise<Artifact> =>
  forge.user.get<Artifact>(`/api/artifacts/${id}${rest}`);

const remove = (id: string): Promise<{ status: number; body: unknown }> =>
  forge.user.call("DELETE", `/api/artifacts/${id}`);

const folderOf = (artifact: Artifact): string =>
  join(forge.stack.storeDir, artifact.uri.replace("forge://", ""));

describe("a job's URIs come with download URLs of this API", () => {
  const BUCKET = "s3://bucket/somewhere/";
  interface Shown {
    job_id: string;
    artifacts_uri: string;
    artifacts_url: string | null;
    logs_url: string;
  }
  const shown = async (files: Record<string, string>, artifactsUri: string | null) => {
    const { job_id: id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    for (const [path, content] of Object.entries(files)) {
      expect(await worker.upload(job, path, content)).toBe(201);
    }
    expect(await worker.log(job, "one line\n")).toBe(202);
    await worker.complete(job, { artifacts_uri: artifactsUri, logs_uri: "s3://bucket/log.txt" });
    await untilEnded(forge.user, id);
    const one = await forge.user.get<Shown>(`/api/jobs/${id}`);
    const { jobs } = await forge.user.get<{ jobs: Shown[] }>("/api/jobs?limit=1");
    expect(jobs).toMatchObject([{ job_id: id, artifacts_url: one.artifacts_url }]);
    return one;
  };

  test.each([null, BUCKET])(
    "files in Forge's store, also if the worker reports %s",
    async (uri) => {
      const job = await shown({ "rows.jsonl": ROWS }, uri);
      expect(job.artifacts_uri).toMatch(uri ?? /^forge:/);
      const listed = await forge.user.get<{ files: object[] }>(String(job.artifacts_url));
      expect(listed.files).toMatchObject([{ path: "rows.jsonl" }]);
      const { bytes } = await download(forge.user, `${job.artifacts_url}/rows.jsonl`);
      expect(bytes.toString()).toBe(ROWS);
      const log = await download(forge.user, job.logs_url);
      expect(log.bytes.toString()).toBe("one line\n");
    },
  );

  test("files that are only in the worker's bucket have none", async () => {
    const job = await shown({}, BUCKET);
    expect(job).toMatchObject({ artifacts_uri: BUCKET, artifacts_url: null });
  });
});

describe("a manifest", () => {
  test("has the measured values, and lists the worker's contradicting reports", async () => {
    const { manifest } = await make(
      "audit",
      AUDIT,
      { "scored.jsonl": ROWS, "notes/read me.txt": "" },
      {
        num_rows: 4_000_000,
        schema: { columns: [{ name: "a", dtype: "int32" }] },
        quality: { clarity_mean: "high", correctness_mean: 0.5, educational_mean: null, own: [1] },
        dataset_uri: "forge://artifacts/datasets/ds_of_another/scored.jsonl",
        git_commit: 7,
      },
    );
    expect(manifestErrors(manifest)).toEqual([]);
    const columns = [
      { name: "a", dtype: "int64" },
      { name: "b", dtype: "string" },
    ];
    expect(manifest).toMatchObject({
      num_rows: 3,
      schema: { columns },
      quality: { correctness_mean: 0.5, own: [1] },
      git_commit: null,
      verified: true,
      measured: ["files", "num_rows", "schema", "cost_estimate_usd"],
      files: [
        { path: "notes/read me.txt", size_bytes: 0, sha256: sha256("") },
        { path: "scored.jsonl", size_bytes: ROWS.length, sha256: sha256(ROWS) },
      ],
    });
    expect(manifest.contradictions.map(({ field, claimed }) => [field, claimed])).toEqual([
      ["dataset_uri", "forge://artifacts/datasets/ds_of_another/scored.jsonl"],
      ["num_rows", 4_000_000],
      ["schema", { columns: [{ name: "a", dtype: "int32" }] }],
      ["quality.clarity_mean", "high"],
      ["git_commit", 7],
    ]);
  });

  test("of an honest worker lists no contradiction; an unreadable table is listed", async () => {
    const honest = await make("audit", AUDIT, { "scored.csv": "a,b\n1,2\n" }, { num_rows: 1 });
    expect(honest.manifest).toMatchObject({ num_rows: 1, contradictions: [] });
    const { manifest } = await make("audit", AUDIT, { "scored.parquet": "PAR1 not at all PAR1" });
    expect(manifestErrors(manifest)).toEqual([]);
    expect(manifest).toMatchObject({
      verified: false,
      num_rows: null,
      contradictions: [
        { field: "files.scored.parquet", measured: expect.stringMatching(/footer/) },
      ],
    });
  });

  test("of files outside Forge's store has the reported values, and is not verified", async () => {
    const { manifest } = await make(
      "train",
      { dataset_id: "d", model: "m", params: { lr: 0.1 } },
      {},
      {
        parameter_count: 10,
        architecture: "transformer",
        training_steps: -1,
      },
    );
    expect(manifestErrors(manifest)).toEqual([]);
    expect(manifest).toMatchObject({
      verified: false,
      files: [],
      parameter_count: 10,
      training_steps: null,
      training_epochs: 3,
      lr: 0.1,
      contradictions: [{ field: "training_steps", claimed: -1, measured: null }],
    });
  });

  test("its files follow the id that the worker chose, and are the latest uploads", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    await worker.upload(job, "scored.jsonl", "{}\n");
    await worker.upload(job, "scored.jsonl", ROWS);
    await worker.upload(job, "deep/folder/x.bin", "x");
    await worker.complete(job, { result: { dataset_id: "my-own.name" }, artifacts_uri: null });
    await untilEnded(forge.user, job_id);
    const artifact = await get("my-own.name");
    expect(artifact.manifest).toMatchObject({
      num_rows: 3,
      files: [{ path: "deep/folder/x.bin" }, { path: "scored.jsonl", sha256: sha256(ROWS) }],
    });
    const { bytes } = await download(forge.user, "/api/artifacts/my-own.name/files/scored.jsonl");
    expect(bytes.toString()).toBe(ROWS);
    const datasets = join(forge.stack.storeDir, "artifacts", "datasets");
    await waitFor("the minted folder to go", () => {
      return !readdirSync(datasets).includes(String(job.output_ids.dataset_id));
    });
  });

  test("the name manifest.json belongs to the control plane, in any spelling", async () => {
    await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    for (const path of ["manifest.json", "MANIFEST.json", "Manifest.JSON"]) {
      expect(await worker.upload(job, path, "{}")).toBe(400);
    }
    expect(await worker.upload(job, "below/manifest.json", "{}")).toBe(201);
    await worker.complete(job);
    await untilEnded(forge.user, job.job_id);
  });
});

test.each([
  ["a text that is cut inside a surrogate pair", "generate", { num_rows: "😀".repeat(700) }],
  ["values that are no numbers", "evaluate", { scores: { x: "😀".repeat(600), toString: 1 } }],
  [
    "names of properties that every object has",
    "audit",
    { num_rows: 9, quality: { constructor: 1, toString: {} } },
  ],
  [
    "values of every wrong kind",
    "audit",
    { schema: [1], num_rows: {}, git_commit: [], quality: 7 },
  ],
  ["an invalid URI", "audit", { dataset_uri: "forge://%ff", num_rows: -1e308 }],
])("%s does not keep a job from ending", async (_what, type, result) => {
  const bodies: Record<string, object> = {
    generate: { task: "t", size: 3, teacher: "t" },
    audit: AUDIT,
    evaluate: { checkpoint_id: "c" },
  };
  const { manifest } = await make(type, bodies[type] ?? {}, { "raw.jsonl": ROWS }, result);
  expect(manifestErrors(manifest)).toEqual([]);
  expect(manifest.contradictions).not.toEqual([]);
});

test("columns that a manifest can't name make the table unreadable, and the job still ends", async () => {
  const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`c${n}`, 1]));
  for (const row of [{ "a\u0000b": 1 }, many]) {
    const { manifest } = await make("audit", AUDIT, { "scored.jsonl": JSON.stringify(row) });
    expect(manifestErrors(manifest)).toEqual([]);
    expect(manifest).toMatchObject({
      verified: false,
      measured: ["files", "cost_estimate_usd"],
      num_rows: null,
      contradictions: [{ field: "files.scored.jsonl", claimed: "a table" }],
    });
  }
});

test("an id generated for another attempt is refused", async () => {
  const first = await forge.user.submit("audit", AUDIT);
  const lost = await worker.take();
  await worker.upload(lost, "scored.jsonl", ROWS);
  await worker.fail(lost);
  await untilEnded(forge.user, first.job_id);
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await worker.complete(await worker.take(), {
    result: { dataset_id: lost.output_ids.dataset_id },
  });
  expect(await untilEnded(forge.user, job_id)).toMatchObject({
    status: "failed",
    error_code: "artifact_conflict",
  });
});

test("files of a lost attempt are never shown, and are removed", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const lost = await worker.take();
  await worker.upload(lost, "scored.jsonl", "{}\n");
  await worker.fail(lost, { retryable: true });
  expect(await worker.upload(lost, "late.jsonl", "{}\n")).toBe(409);
  const won = await worker.take();
  await worker.upload(won, "scored.jsonl", ROWS);
  await worker.complete(won);
  await untilEnded(forge.user, job_id);
  const { manifest } = await artifactOf(forge.user, job_id);
  expect(manifest).toMatchObject({ attempt: 2, num_rows: 3, files: [{ path: "scored.jsonl" }] });
  const minted = (job: DispatchedJob): string => String(job.output_ids.dataset_id);
  expect((await forge.user.call("GET", `/api/artifacts/${minted(lost)}`)).status).toBe(404);
  const datasets = join(forge.stack.storeDir, "artifacts", "datasets");
  await waitFor("the lost folder to go", () => !readdirSync(datasets).includes(minted(lost)));
  expect(readdirSync(datasets)).toContain(minted(won));
});

test("registration waits for a file that is being moved, and uses its final content", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  await worker.upload(job, "scored.jsonl", "{}\n");
  // Simulate that another server is moving a newer upload of this file into place.
  await execute(
    forge.ctx.pool,
    `update attempt_files set sha256 = null, movers = 1, moving_until = now() + interval '1 hour'
     where job_id = $1`,
    [job_id],
  );
  await worker.complete(job, { artifacts_uri: null });
  await untilRetried(forge, job_id);
  expect((await forge.user.job(job_id)).status).toBe("running");
  const folder = join(
    forge.stack.storeDir,
    "artifacts/datasets",
    String(job.output_ids.dataset_id),
  );
  writeFileSync(join(folder, "scored.jsonl"), ROWS);
  await execute(forge.ctx.pool, "update attempt_files set movers = 0 where job_id = $1", [job_id]);
  await untilEnded(forge.user, job_id);
  expect((await artifactOf(forge.user, job_id)).manifest).toMatchObject({
    num_rows: 3,
    files: [{ path: "scored.jsonl", sha256: sha256(ROWS) }],
  });
});

test("files of a failed job's attempts are removed", async () => {
  await forge.user.submit("train", { dataset_id: "d", model: "m" });
  const job = await worker.take();
  await worker.upload(job, "model.pt", "half");
  await worker.fail(job);
  await untilEnded(forge.user, job.job_id);
  const folder = join(forge.stack.storeDir, "artifacts", "checkpoints");
  await waitFor("it to go", () => {
    return !existsSync(join(folder, String(job.output_ids.checkpoint_id)));
  });
});

test("a lineage has all ancestors and descendants, and nothing of other tenants", async () => {
  const raw = await make(
    "generate",
    { task: "t", size: 3, teacher: "some-teacher" },
    { "raw.jsonl": ROWS },
  );
  const scored = await make(
    "audit",
    { dataset_uri: `${raw.uri}raw.jsonl` },
    { "scored.jsonl": ROWS },
  );
  const aside = await make("audit", { dataset_uri: raw.uri }, { "scored.jsonl": ROWS });
  const model = await make(
    "train",
    { dataset_id: scored.artifact_id, model: "base-model" },
    { "model.pt": "weights" },
  );
  const tuned = await make(
    "train",
    { dataset_uri: "s3://team/more.jsonl", model: model.artifact_id },
    { "model.pt": "weights" },
  );
  expect(model.manifest).toMatchObject({ training_data: [scored.artifact_id] });
  const lineage = await forge.user.get<Lineage>(`/api/artifacts/${scored.artifact_id}/lineage`);
  const ids = [raw, scored, model, tuned].map((artifact) => artifact.artifact_id);
  const artifacts = lineage.nodes.filter(({ type }) => type === "artifact");
  expect(artifacts.map(({ id }) => id)).toEqual(ids);
  expect(ids).not.toContain(aside.artifact_id);
  const externals = lineage.nodes.filter(({ type }) => type === "external");
  expect(externals.map(({ id }) => id).sort()).toEqual([
    "base-model",
    "s3://team/more.jsonl",
    "some-teacher",
  ]);
  const jobs = lineage.nodes.filter(({ type }) => type === "job");
  expect(jobs.map(({ kind }) => kind)).toEqual(["generate", "audit", "train", "train"]);
  const jobOf = (at: number): string => String(jobs[at]?.id);
  expect(lineage.edges).toEqual(
    expect.arrayContaining([
      { from: jobOf(0), to: ids[0], relation: "output" },
      { from: ids[0], to: jobOf(1), relation: "input" },
      { from: ids[1], to: jobOf(2), relation: "input" },
      { from: ids[2], to: jobOf(3), relation: "input" },
      { from: "some-teacher", to: jobOf(0), relation: "input" },
    ]),
  );
  expect(lineage.truncated).toBe(false);
  const { user: other } = await createTenant(forge, "lineage");
  const path = `/api/artifacts/${scored.artifact_id}/lineage`;
  expect((await other.call("GET", path)).status).toBe(404);
});

describe("an artifact is deleted", () => {
  test("when nothing depends on it, and stays listed as deleted", async () => {
    const raw = await make("generate", { task: "t", size: 3, teacher: "t" }, { "raw.jsonl": ROWS });
    const scored = await make("audit", { dataset_uri: raw.uri }, { "scored.jsonl": ROWS });
    expect(await remove(raw.artifact_id)).toMatchObject({
      status: 409,
      body: {
        error: {
          code: "artifact_in_use",
          details: { dependents: [{ type: "artifact", id: scored.artifact_id }] },
        },
      },
    });
    expect(await remove(scored.artifact_id)).toMatchObject({ status: 200 });
    const first = await remove(raw.artifact_id);
    expect(first).toMatchObject({ status: 200, body: { deleted_at: expect.any(String) } });
    expect((await remove(raw.artifact_id)).body).toEqual(first.body);
    await waitFor("the bytes to go", () => !existsSync(folderOf(raw)));
    expect((await get(raw.artifact_id)).manifest).toEqual(raw.manifest);
    for (const rest of ["/files/raw.jsonl", "/archive"]) {
      const gone = await forge.user.call("GET", `/api/artifacts/${raw.artifact_id}${rest}`);
      expect(gone).toMatchObject({ status: 410, body: { error: { code: "artifact_deleted" } } });
    }
    const list = (query: string): Promise<{ artifacts: Artifact[] }> =>
      forge.user.get(`/api/artifacts?${query}`);
    const ids = async (query: string): Promise<string[]> =>
      (await list(query)).artifacts.map(({ artifact_id }) => artifact_id);
    expect(await ids("kind=raw_dataset")).not.toContain(raw.artifact_id);
    expect(await ids("kind=raw_dataset&deleted=true")).toContain(raw.artifact_id);
    const { nodes } = await forge.user.get<Lineage>(`/api/artifacts/${scored.artifact_id}/lineage`);
    expect(nodes).toContainEqual(
      expect.objectContaining({ id: raw.artifact_id, deleted_at: expect.any(String) }),
    );
    const unresolved = await forge.user.post<{ job_id: string; warnings: unknown[] }>(
      "/api/jobs/train",
      { dataset_id: raw.artifact_id, model: "m" },
    );
    expect(unresolved.warnings).toMatchObject([{ code: "unresolved_reference" }]);
    await worker.complete(await worker.take());
    await untilEnded(forge.user, unresolved.job_id);
  });

  test("not while an unfinished job names it, nor by another tenant", async () => {
    const raw = await make("generate", { task: "t", size: 3, teacher: "t" }, { "raw.jsonl": ROWS });
    const { job_id } = await forge.user.submit("audit", { dataset_uri: `${raw.uri}raw.jsonl` });
    expect(await remove(raw.artifact_id)).toMatchObject({
      status: 409,
      body: { error: { details: { dependents: [{ type: "job", id: job_id }] } } },
    });
    await worker.fail(await worker.take());
    await untilEnded(forge.user, job_id);
    const { user: other } = await createTenant(forge, "deleter");
    expect((await other.call("DELETE", `/api/artifacts/${raw.artifact_id}`)).status).toBe(404);
    expect((await remove(raw.artifact_id)).status).toBe(200);
  });

  test("not while it is a live deployment", async () => {
    const deployed = await make(
      "deploy",
      { checkpoint_id: "c" },
      { "config.json": "{}" },
      {
        inference_url: "http://box:1/v1",
      },
    );
    expect(manifestErrors(deployed.manifest)).toEqual([]);
    expect(await remove(deployed.artifact_id)).toMatchObject({
      status: 409,
      body: { error: { code: "deployment_active" } },
    });
  });

  test("by the rules of its own tenant only", async () => {
    const [old, used, young] = [
      await make("generate", { task: "t", size: 3, teacher: "t" }, { "raw.jsonl": ROWS }),
      await make("generate", { task: "t", size: 3, teacher: "t" }, { "raw.jsonl": ROWS }),
      await make("generate", { task: "t", size: 3, teacher: "t" }, { "raw.jsonl": ROWS }),
    ];
    const kept = await make("audit", { dataset_uri: used.uri }, { "scored.jsonl": ROWS });
    await execute(
      forge.ctx.pool,
      "update artifacts set created_at = now() - interval '31 days' where artifact_id = any($1)",
      [[old.artifact_id, used.artifact_id, kept.artifact_id]],
    );
    const { user: other } = await createTenant(forge, "rules");
    const rules = { rules: [{ kind: "raw_dataset", keep_days: 30 }] };
    const theirs = await upload(other);
    await execute(
      forge.ctx.pool,
      "update artifacts set created_at = now() - interval '31 days' where artifact_id = $1",
      [theirs],
    );
    // Insert more than one page of artifacts, all with the same time.
    await execute(
      forge.ctx.pool,
      `insert into artifacts (artifact_id, user_id, artifact_type, kind, uri, created_by, created_at,
                              size_bytes, manifest, registered_at)
       select artifact_id || '-' || n, user_id, artifact_type, kind, uri, created_by, created_at,
              size_bytes, manifest, registered_at
       from artifacts cross join generate_series(1, 250) as n where artifact_id = $1`,
      [theirs],
    );
    await other.call("PUT", "/api/retention", rules);
    await waitFor("theirs to go, and their bytes", async () => {
      const left = await all(
        forge.ctx.pool,
        "select from artifacts where user_id = 'rules' and bytes_removed_at is null",
      );
      return left.length === 0;
    });
    expect((await get(old.artifact_id)).deleted_at).toBeNull();
    expect(await forge.user.call("PUT", "/api/retention", rules)).toMatchObject({
      status: 200,
      body: rules,
    });
    await waitFor(
      "the old one to go",
      async () => (await get(old.artifact_id)).deleted_at !== null,
    );
    for (const { artifact_id: id } of [used, young, kept]) {
      expect((await get(id)).deleted_at).toBeNull();
    }
    const twice = { rules: [...rules.rules, ...rules.rules] };
    expect((await forge.user.call("PUT", "/api/retention", twice)).status).toBe(400);
    await forge.user.call("PUT", "/api/retention", { rules: [] });
    expect(await forge.user.get("/api/retention")).toEqual({ rules: [] });
  });
});

test("storage shows the current bytes, and the byte-time of the past", async () => {
  const { user: tenant } = await createTenant(forge, "storage");
  const id = await upload(tenant);
  interface Usage {
    total_bytes: number;
    artifacts: number;
    gb_months: number;
    by_kind: Record<string, unknown>;
  }
  const usage = await tenant.get<Usage>("/api/storage?period=2020-02");
  expect(usage).toMatchObject({ artifacts: 0, gb_months: 0 });
  // Backdate the artifact: it existed for half of February 2020, which had 29 days.
  await execute(
    forge.ctx.pool,
    `update artifacts set created_at = '2020-01-15', deleted_at = '2020-02-15T12:00:00Z',
            deleted_by = 'me', size_bytes = 2e9 where artifact_id = $1`,
    [id],
  );
  const past = await tenant.get<Usage>("/api/storage?period=2020-02");
  expect(past.gb_months).toBeCloseTo(1, 9);
  expect((await tenant.get<Usage>("/api/storage?period=2020-01")).gb_months).toBeCloseTo(
    34 / 31,
    9,
  );
  expect(await tenant.get<Usage>("/api/storage")).toMatchObject({ total_bytes: 0, artifacts: 0 });
});

test("a download is the file, a range of it, or all of them as an archive", async () => {
  const big = Buffer.alloc(3_000_000, "0123456789");
  const { artifact_id: id } = await make(
    "train",
    { dataset_id: "d", model: "m" },
    {
      "model.pt": big,
      "tokenizer/vocab.txt": "words",
      "tokenizer/empty": "",
    },
  );
  const file = `/api/artifacts/${id}/files/model.pt`;
  const whole = await download(forge.user, file);
  expect(whole.headers.get("x-checksum-sha256")).toBe(sha256(big));
  expect(whole.bytes.equals(big)).toBe(true);
  const part = await download(forge.user, file, { range: "bytes=1000000-1000004" });
  expect([part.status, part.bytes.toString()]).toEqual([206, "01234"]);
  // A local store has no signed URLs, so the server sends the file itself.
  expect((await download(forge.user, `${file}?signed=true`)).status).toBe(200);
  const own = await download(forge.user, `/api/artifacts/${id}/files/manifest.json`);
  expect(JSON.parse(own.bytes.toString())).toEqual((await get(id)).manifest);
  const archive = await download(forge.user, `/api/artifacts/${id}/archive`);
  expect(archive.headers.get("content-type")).toBe("application/x-tar");
  const folder = mkdtempSync(join(tmpdir(), "forge-archive-"));
  try {
    writeFileSync(join(folder, "a.tar"), archive.bytes);
    execFileSync("tar", ["-xf", "a.tar"], { cwd: folder });
    expect(readFileSync(join(folder, id, "model.pt")).equals(big)).toBe(true);
    expect(readdirSync(join(folder, id), { recursive: true }).sort()).toEqual([
      "manifest.json",
      "model.pt",
      "tokenizer",
      "tokenizer/empty",
      "tokenizer/vocab.txt",
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("an archive of an incomplete artifact breaks off", async () => {
  const artifact = await make(
    "train",
    { dataset_id: "d", model: "m" },
    { "model.pt": "x".repeat(5_000) },
  );
  const file = join(folderOf(artifact), "model.pt");
  const bytes = readFileSync(file);
  for (const broken of [() => writeFileSync(file, "short"), () => rmSync(file)]) {
    broken();
    const path = `/api/artifacts/${artifact.artifact_id}/archive`;
    await expect(download(forge.user, path)).rejects.toThrow();
  }
  writeFileSync(file, bytes);
  // The broken downloads must not affect other requests.
  expect((await forge.user.call("GET", "/api/auth/ping")).status).toBe(200);
  expect((await forge.user.call("GET", "/readyz")).status).toBe(200);
});
