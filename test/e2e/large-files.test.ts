/** Uploads and downloads a file much larger than the server's allowed memory. */

import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canHaveS3Server, S3Server } from "../../dev/stack/s3-server";
import { saySilently } from "../../dev/stack/say";
import { artifactOf } from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { oneFormOf } from "../support/slow";
import type { TestWorker } from "../support/test-worker";

const MEBIBYTE = 1024 * 1024;
const SIZE_MIB = process.env.TEST_SLOW ? 2_048 : 128;
const WARM_UP_MIB = 16;
const MAX_GROWTH_MB = 64;

const home = mkdtempSync(join(tmpdir(), "forge-large-"));
let s3: S3Server | undefined;
let forge: Forge | undefined;

afterEach(async () => {
  await forge?.stop();
  await s3?.process.stop();
});

afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

async function bucket(): Promise<Record<string, string>> {
  s3 = await S3Server.start(home, saySilently);
  mkdirSync(join(s3.directory, "forge-data"));
  return {
    FORGE_STORE_URL: "s3://forge-data",
    ...s3.environment,
  };
}

/**
 * Blocks that differ in their first four bytes, so that the checksum shows if a block is in the
 * wrong place.
 */
function* blocks(mebibytes: number): Generator<Buffer> {
  const block = randomBytes(MEBIBYTE);
  for (let at = 0; at < mebibytes; at++) {
    block.writeUInt32LE(at, 0);
    yield Buffer.from(block);
  }
}

/** Resident memory of a process in MB: now, and the peak since `resetPeak`. */
function memoryOf(pid: number): { nowMb: number; peakMb: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (name: string): number =>
    Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
  return { nowMb: read("VmRSS"), peakMb: read("VmHWM") };
}

const resetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, "5");

/** Sends blocks as the body, as fast as they are accepted. */
function put(
  url: string,
  key: string,
  mebibytes: number,
): Promise<{ status: number; sha256: string }> {
  const hash = createHash("sha256");
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method: "PUT",
        headers: { "x-service-api-key": key, "content-type": "application/octet-stream" },
      },
      (answer) => {
        answer.resume();
        answer.on("end", () => {
          resolve({ status: answer.statusCode ?? 0, sha256: hash.digest("hex") });
        });
      },
    );
    sent.on("error", reject);
    const all = blocks(mebibytes);
    const more = (): void => {
      for (;;) {
        const { value, done } = all.next();
        if (done) return void sent.end();
        hash.update(value);
        if (!sent.write(value)) return void sent.once("drain", more);
      }
    };
    more();
  });
}

async function get(url: string, key: string): Promise<{ bytes: number; sha256: string }> {
  const answer = await fetch(url, { headers: { "x-service-api-key": key } });
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest("hex") };
}

/** Runs a job that uploads one file. Compares the file with its manifest and its download. */
async function roundTrip(
  { stack, user }: Forge,
  worker: TestWorker,
  mebibytes: number,
): Promise<void> {
  const { job_id } = await user.submit("train", { dataset_id: "d", model: "m" });
  const job = await worker.take();
  const query = `worker_id=${worker.id}&attempt=${job.attempt}`;
  const url = `${stack.apiUrl}/worker/jobs/${job_id}/artifacts/model.pt?${query}`;
  const sent = await put(url, stack.keys.workerKey, mebibytes);
  expect(sent.status).toBe(201);
  await worker.complete(job, { artifacts_uri: null });
  expect(await untilEnded(user, job_id, 120_000)).toMatchObject({ status: "completed" });
  const { artifact_id: id, manifest } = await artifactOf(user, job_id);
  expect(manifest.files).toMatchObject([{ path: "model.pt", sha256: sent.sha256 }]);
  const got = await get(`${stack.apiUrl}/api/artifacts/${id}/files/model.pt`, user.key);
  expect(got).toEqual({ bytes: mebibytes * MEBIBYTE, sha256: sent.sha256 });
}

const stores: [string, () => Promise<Record<string, string>>][] = [
  ["the local store", async () => ({})],
  ...(canHaveS3Server() ? [["a bucket", bucket] as (typeof stores)[number]] : []),
];

test.each(oneFormOf(stores))(
  `${SIZE_MIB} MiB to and from %s take under ${MAX_GROWTH_MB} MB of memory`,
  async (name, open) => {
    forge = await startForge(await open(), { own: ["server"] });
    const worker = await forge.worker("w");
    worker.startHeartbeats(2_000);
    // Transfer a small file first: the memory for code and caches must not be measured.
    await roundTrip(forge, worker, WARM_UP_MIB);
    const pid = forge.stack.server?.pid ?? 0;
    resetPeak(pid);
    const { nowMb } = memoryOf(pid);
    await roundTrip(forge, worker, SIZE_MIB);
    const growth = memoryOf(pid).peakMb - nowMb;
    worker.stopHeartbeats();
    process.stderr.write(`${name}: ${growth.toFixed(0)} MB more\n`);
    expect(growth).toBeLessThan(MAX_GROWTH_MB);
    await forge.proveInvariants();
  },
  600_000,
);
