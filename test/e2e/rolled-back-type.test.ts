/** A release with one more job type was rolled back. Jobs of that type remain in the database. */

import { execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge();
});

afterAll(async () => {
  await forge?.stop();
});

/** Changes a job's rows as if a later release had inserted them. */
const becomeUnknown = (jobId: string): Promise<void> =>
  transaction(forge.ctx.pool, async (db) => {
    await execute(db, "set local session_replication_role = replica");
    for (const table of ["jobs", "billing_records"]) {
      await execute(db, `update ${table} set job_type = 'quantize' where job_id = $1`, [jobId]);
    }
    await execute(
      db,
      "update attempts set shape = replace(shape, 'audit', 'quantize') where job_id = $1",
      [jobId],
    );
    await execute(db, "update artifacts set kind = 'quantized_checkpoint' where job_id = $1", [
      jobId,
    ]);
  });

test("reads of a tenant that has such jobs still answer", async () => {
  const worker = await forge.worker("w");
  const { job_id: id } = await forge.user.submit("audit", AUDIT);
  await worker.complete(await worker.take());
  await untilEnded(forge.user, id);
  await becomeUnknown(id);
  for (const path of [
    "jobs",
    `jobs/${id}`,
    `jobs/${id}/attempts`,
    `jobs/${id}/artifacts`,
    "artifacts",
    "billing/summary",
    "billing/records",
    `billing/records/${id}`,
    "workers",
    "limits",
  ]) {
    const { status } = await forge.user.call("GET", `/api/${path}`);
    expect({ path, status }).toEqual({ path, status: 200 });
  }
  expect(await forge.user.get(`/api/jobs/${id}`)).toMatchObject({ job_type: "quantize" });
});

test("such a job stays queued and can be cancelled, and other jobs are assigned", async () => {
  const { job_id: unknown } = await forge.user.submit("audit", AUDIT);
  await becomeUnknown(unknown);
  const worker = await forge.worker("w2");
  const { job_id: known } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  expect(job.job_id).toBe(known);
  await worker.complete(job);
  await untilEnded(forge.user, known);
  expect(await forge.user.job(unknown)).toMatchObject({ status: "pending", attempts: 0 });
  const { status } = await forge.user.call("POST", `/api/jobs/${unknown}/cancel`, {});
  expect(status).toBe(202);
});
