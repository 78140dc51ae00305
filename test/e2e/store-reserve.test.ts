/**
 * A store whose free space is below its reserve. Uploads may not use the reserve; logs, bills and
 * manifests may.
 */

import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";

const RESERVE = String(2 ** 52);
let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_STORE_RESERVE_BYTES: RESERVE });
});

afterAll(async () => {
  await forge?.stop();
});

test("a dataset is refused, and the error names the operator's setting", async () => {
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": forge.user.key, "content-type": "text/csv" },
    body: "a\n1\n",
  });
  expect([response.status, await response.json()]).toMatchObject([
    413,
    {
      error: {
        code: "quota_exceeded",
        message: expect.stringContaining("FORGE_STORE_RESERVE_BYTES"),
        details: { cap: "store_reserve", limit: Number(RESERVE), used: expect.any(Number) },
      },
    },
  ]);
});

test("a worker's upload waits, and its job's log, bill and manifest are written", async () => {
  const worker = await forge.worker("box");
  const { job_id: id } = await forge.user.submit("audit", { dataset_uri: "s3://b/d.parquet" });
  const job = await worker.take();
  expect(await worker.upload(job, "scored.parquet", "x")).toBe(503);
  const query = `worker_id=box&attempt=${job.attempt}`;
  const log = await fetch(`${forge.stack.apiUrl}/worker/jobs/${id}/log?${query}`, {
    method: "PATCH",
    headers: {
      "x-service-api-key": forge.stack.keys.workerKey,
      "content-type": "application/octet-stream",
      "content-range": "bytes 0-3/*",
    },
    body: "said",
  });
  expect(log.status).toBe(202);
  await worker.complete(job);
  const { result } = await untilEnded(forge.user, id);
  const manifest = await forge.user.call("GET", `/api/artifacts/${result?.dataset_id}/manifest`);
  expect(manifest.status).toBe(200);
  await forge.proveInvariants();
});
