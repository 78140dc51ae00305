import { lstatSync } from "node:fs";
import { join } from "node:path";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { pathsBelow } from "../support/paths-below";

let forge: Forge;
let formerMask: number;

beforeAll(async () => {
  // The most permissive umask. The server inherits it.
  formerMask = process.umask(0o000);
  forge = await startForge({}, { own: ["server"] });
});

afterAll(async () => {
  process.umask(formerMask);
  await forge?.stop();
});

/** Files and folders below this one that users other than their owner may read, write or enter. */
function openTo(folder: string): string[] {
  return pathsBelow(folder).filter((name) => {
    const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
    return found !== undefined && (found.mode & 0o077) !== 0;
  });
}

test("whatever the umask, only the server's user can access its files", async () => {
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": forge.stack.keys.userKey, "content-type": "text/csv" },
    body: "a\n1\n",
  });
  const { dataset_id: id } = (await response.json()) as { dataset_id: string };
  await forge.user.get(`/api/artifacts/${id}/preview`);
  const worker = await forge.worker("w");
  const { job_id } = await forge.user.submit("audit", { dataset_uri: "s3://b/d.parquet" });
  const job = await worker.take();
  await worker.upload(job, "scored.jsonl", '{"a":1}\n');
  await worker.complete(job);
  await untilEnded(forge.user, job_id);
  expect(pathsBelow(forge.stack.storeDir).length).toBeGreaterThan(5);
  expect(openTo(forge.stack.storeDir)).toEqual([]);
  await forge.endTest();
});
