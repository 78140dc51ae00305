/**
 * A control plane whose store is a bucket, and a tenant with its own bucket, on a real S3 server.
 */

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canHaveS3Server, S3Server } from "../../dev/stack/s3-server";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { logOf, runJob } from "../support/agent-jobs";
import { artifactOf, download, manifestErrors, sha256 } from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { writeHandlers } from "../support/own-handlers";
import { createTenant } from "../support/tenants";
import type { DispatchedJob } from "../support/test-worker";

let forge: Forge;
let s3: S3Server;
const home = mkdtempSync(join(tmpdir(), "forge-bucket-"));

const HANDLERS = {
  generate: `head -c 20000000 /dev/urandom >"$FORGE_OUTPUT_DIR/large.bin"
printf '{"a":1}\\n{"a":2}\\n' >"$FORGE_OUTPUT_DIR/raw.jsonl"`,
  train: `wc -c <"$FORGE_INPUT_DATASET_ID/large.bin"; cp "$FORGE_INPUT_DATASET_ID/large.bin" "$FORGE_OUTPUT_DIR/model.pt"`,
  audit: `if [ -d "$FORGE_INPUT_DATASET_URI" ]; then ls "$FORGE_INPUT_DATASET_URI"; else cat "$FORGE_INPUT_DATASET_URI"; fi`,
};

const ownBucket = (more: object = {}): object => ({
  bucket: "tenants-own",
  endpoint: s3.endpoint,
  access_key_id: s3.accessKeyId,
  secret_access_key: s3.secretAccessKey,
  ...more,
});

(canHaveS3Server() ? describe : describe.skip)("a store that is a bucket", () => {
  beforeAll(async () => {
    s3 = await S3Server.start(home, saySilently);
    for (const bucket of ["forge-data", "tenants-own"]) mkdirSync(join(s3.directory, bucket));
    mkdirSync(join(s3.directory, "tenants-own", "shards"));
    for (const [name, text] of [
      ["rows.jsonl", '{"mine":1}\n'],
      ["shards/1.jsonl", "{}\n"],
      ["shards/2.jsonl", "{}\n"],
    ] as const) {
      writeFileSync(join(s3.directory, "tenants-own", name), text);
    }
    const tenants = join(home, "tenants.json");
    const stores = {
      local: [
        ownBucket(),
        ownBucket({ bucket: "wrong-key", secret_access_key: "wrong" }),
        ownBucket({ bucket: "by-number", endpoint: "http://127.0.0.9:1" }),
        ownBucket({ scheme: "spaces", endpoint: s3.endpoint.replace("127.0.0.1", "localhost") }),
        ownBucket({ bucket: "away", endpoint: "http://127.0.0.1:1" }),
      ],
    };
    writeFileSync(tenants, JSON.stringify(stores));
    chmodSync(tenants, 0o600);
    forge = await startForge({
      FORGE_STORE_URL: "s3://forge-data",
      ...s3.environment,
      FORGE_TENANT_STORES_FILE: tenants,
      FORGE_TENANT_STORES_ALLOW: "127.0.0.1",
      FORGE_SWEEP_AFTER_S: "0.5",
      FORGE_SWEEP_INTERVAL_S: "0.5",
      HEARTBEAT_INTERVAL: "0.5",
    });
    await forge.stack.startAgent("box", {
      FORGE_AGENT_CONFIG: writeHandlers(forge, "bucket", HANDLERS),
    });
  }, 120_000);

  afterEach(async () => {
    await forge.proveInvariants();
  });

  afterAll(async () => {
    await forge?.stop();
    await s3?.process.stop();
    rmSync(home, { recursive: true, force: true });
  });

  test("files are uploaded and downloaded unchanged", async () => {
    const { job_id } = await runJob(forge.user, "generate", { task: "t", size: 2, teacher: "t" });
    const { artifact_id: id, uri, manifest } = await artifactOf(forge.user, job_id);
    expect(uri).toBe(`forge://artifacts/datasets/${id}/`);
    expect(manifestErrors(manifest)).toEqual([]);
    expect(manifest).toMatchObject({ verified: true, num_rows: 2, contradictions: [] });
    const stored = join(s3.directory, "forge-data", "artifacts", "datasets", id);
    const large = readFileSync(join(stored, "large.bin"));
    expect(manifest.files[0]).toMatchObject({ path: "large.bin", sha256: sha256(large) });
    expect(JSON.parse(readFileSync(join(stored, "manifest.json"), "utf8"))).toEqual(manifest);

    const file = `/api/artifacts/${id}/files/large.bin`;
    const { bytes } = await download(forge.user, file);
    expect(bytes.equals(large)).toBe(true);
    const signed = await download(forge.user, `${file}?signed=true`);
    expect(signed.status).toBe(307);
    const there = await fetch(String(signed.headers.get("location")));
    expect(sha256(Buffer.from(await there.arrayBuffer()))).toBe(sha256(large));

    const train = await runJob(forge.user, "train", { dataset_id: id, model: "m" });
    expect(await logOf(forge.user, train.job_id)).toMatch(/^20000000\n/);
    await waitFor("the uploads to be swept", async () => {
      return (await forge.ctx.store.list("uploads/")).length === 0;
    });
  }, 60_000);

  test("a dataset is uploaded in parts, and measured", async () => {
    const rows = `{"text":"${"x".repeat(1_000)}"}\n`.repeat(20_000);
    const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
      method: "POST",
      headers: {
        "x-service-api-key": forge.user.key,
        "content-type": "application/x-ndjson",
        "x-checksum-sha256": sha256(rows),
      },
      body: rows,
    });
    const dataset = (await response.json()) as { dataset_id: string; num_rows: number };
    expect(dataset.num_rows).toBe(20_000);
    const bad = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
      method: "POST",
      headers: { "x-service-api-key": forge.user.key, "content-type": "application/x-ndjson" },
      body: `${rows}not json\n`,
    });
    expect(await bad.json()).toMatchObject({ error: { details: { row: 20_001 } } });
    const { status } = await forge.user.call("DELETE", `/api/artifacts/${dataset.dataset_id}`);
    expect(status).toBe(200);
    await waitFor("the bytes to go", async () => {
      const left = await forge.ctx.store.list(`artifacts/datasets/${dataset.dataset_id}/`);
      return left.length === 0;
    });
  });

  test("its own bucket gives no access to other tenants' files or unregistered ones", async () => {
    const { user, worker } = await createTenant(forge, "thief");
    const mine = await runJob(forge.user, "generate", { task: "t", size: 2, teacher: "t" });
    const { artifact_id: id } = await artifactOf(forge.user, mine.job_id);
    const thief = worker("thiefs");
    await thief.register();
    for (const uri of [
      `s3://forge-data/artifacts/datasets/${id}/raw.jsonl`,
      `s3://forge-data/artifacts/DATASETS/${id}/raw.jsonl`,
      `s3://forge-data//artifacts/%64atasets/${id}/raw.jsonl`,
      "s3://forge-data/billing/records/local/",
      `s3://forge-data/artifacts/logs/${mine.job_id}/attempt-1.log`,
      "s3://tenants-own/rows.jsonl",
    ]) {
      await user.submit("audit", { dataset_uri: uri });
      const job = (await thief.take()) as DispatchedJob & { inputs: { files?: unknown }[] };
      expect(job.inputs[0]?.files).toBeUndefined();
      await thief.fail(job);
      await untilEnded(user, job.job_id);
    }
  });

  test("a tenant's own bucket is read with the credentials that the operator configured", async () => {
    const file = await runJob(forge.user, "audit", { dataset_uri: "s3://tenants-own/rows.jsonl" });
    expect(await logOf(forge.user, file.job_id)).toMatch(/^\{"mine":1\}\n/);
    const byName = await runJob(forge.user, "audit", {
      dataset_uri: "spaces://tenants-own/rows.jsonl",
    });
    expect(await logOf(forge.user, byName.job_id)).toMatch(/^\{"mine":1\}\n/);
    const folder = await runJob(forge.user, "audit", { dataset_uri: "s3://tenants-own/shards/" });
    expect(await logOf(forge.user, folder.job_id)).toMatch(/^1.jsonl\n2.jsonl\n/);
  });

  test.each([
    ["s3://tenants-own/none.jsonl", 1, /none.jsonl does not exist/],
    ["s3://wrong-key/rows.jsonl", 1, /can't be read: the bucket says .*HTTP 403/],
    ["s3://by-number/rows.jsonl", 1, /the operator does not allow connections to 127.0.0.9/],
    ["s3://away/rows.jsonl", 3, /can't be read: .*no answer/],
  ])(
    "%s fails its job after %i tries with the reason",
    async (uri, attempts, why) => {
      const { job_id } = await forge.user.submit("audit", { dataset_uri: uri });
      const job = await untilEnded(forge.user, job_id, 60_000);
      expect(job).toMatchObject({ status: "failed", attempts, error: expect.stringMatching(why) });
      expect(JSON.stringify(job)).not.toContain(s3.secretAccessKey);
    },
    90_000,
  );
});
