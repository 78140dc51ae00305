/** The invariant check finds faults: each test creates one fault, and repairs it. */

import { buffer } from "node:stream/consumers";
import { RAW_DATASET } from "../../core/artifacts/artifact-form";
import {
  artifactPrefix,
  billingRecordKey,
  MANIFEST_FILE,
  prefixOfKind,
} from "../../core/artifacts/artifacts";
import { IMPOSSIBLE_DEPLOYMENTS } from "../../dev/deployment-invariants";
import { checkInvariants } from "../../dev/invariants";
import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { uploadRows } from "../support/budgets";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

let forge: Forge;
let jobId: string;
let artifactId: string;
let uploadId: string;
let userId: string;

beforeAll(async () => {
  forge = await startForge();
  const worker = await forge.worker("w", { name: "NVIDIA A100 80GB", memory_gb: 80 });
  ({ user_id: userId } = await forge.user.get<{ user_id: string }>("/api/auth/ping"));
  ({ job_id: jobId } = await forge.user.submit("audit", AUDIT));
  await worker.complete(await worker.take());
  const { result } = await untilEnded(forge.user, jobId);
  artifactId = String(result?.dataset_id);
  await uploadRows(forge.user, 1);
  const uploads = "select artifact_id as id from artifacts where job_id is null";
  [{ id: uploadId }] = (await all(forge.ctx.pool, uploads)) as [{ id: string }];
  await forge.proveInvariants();
});

afterAll(async () => {
  try {
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

/** Bypasses the triggers that protect bills and ended rows. */
const write = (sql: string): Promise<void> =>
  transaction(forge.ctx.pool, async (db) => {
    await execute(db, "set local session_replication_role = replica");
    await execute(db, sql, [jobId]);
  });

test.each([
  [
    "hours that are neither billed nor recorded as unbilled",
    "a job's billed hours differ from its attempts' hours",
    "update billing_lines set gpu_hours = gpu_hours + 1 where job_id = $1",
    "update billing_lines set gpu_hours = gpu_hours - 1 where job_id = $1",
  ],
  [
    "rows that are not billed",
    "the rows that the control plane counted differ between bill and manifest",
    `with unreported as (
       update attempts set usage = usage - 'rows_processed' where job_id = $1)
     update artifacts set manifest = manifest || '{"measured": ["num_rows"], "num_rows": 1}'
       || jsonb_build_object('before', manifest) where job_id = $1`,
    `with reported as (
       update attempts set usage = usage || '{"rows_processed": 1000}' where job_id = $1)
     update artifacts set manifest = manifest->'before' where job_id = $1`,
  ],
  [
    "measured hours without a line",
    "a job's billed hours differ from its attempts' hours",
    "update attempts set gpu_hours_measured = gpu_hours_measured + 1 where job_id = $1",
    "update attempts set gpu_hours_measured = gpu_hours_measured - 1 where job_id = $1",
  ],
  [
    "a bill without a line",
    "a job's hours are on no billing line",
    "update billing_lines set job_id = null where job_id = $1",
    "update billing_lines set job_id = $1 where line_id like $1 || ':%'",
  ],
])("%s", async (_fault, found, plant, mend) => {
  await write(plant);
  try {
    expect((await checkInvariants(forge.ctx)).join("\n")).toContain(found);
  } finally {
    await write(mend);
  }
});

test.each([
  ["a bill", "the billing file differs from its row", billKey],
  ["a manifest", "manifest.json differs from the registry", manifestKey],
  ["an upload's manifest", "manifest.json differs from the registry", uploadKey],
])("a file of %s that does not match its row", async (_what, found, keyOf) => {
  const { store } = forge.ctx;
  const key = keyOf();
  const right = await buffer(store.read(key));
  await store.put(key, Buffer.from("{}"));
  try {
    expect((await checkInvariants(forge.ctx)).join("\n")).toContain(found);
  } finally {
    await store.put(key, right);
  }
});

test("a billing file without a record", async () => {
  const { store } = forge.ctx;
  const { job_id: cancelled } = await forge.user.submit("audit", AUDIT);
  await forge.user.post(`/api/jobs/${cancelled}/cancel`, {});
  // Wait until the job's workflow has ended. At its end, the workflow removes a billing file that
  // has no record, such as the one that this test writes.
  await forge.proveInvariants();
  const key = billingRecordKey(userId, cancelled);
  await store.put(key, Buffer.from("{}"));
  try {
    const found = `a billing file without a record: ${key}`;
    expect((await checkInvariants(forge.ctx)).join("\n")).toContain(found);
  } finally {
    await store.remove(key);
  }
});

class Undone extends Error {}

/** In each case, the clock was set back once, from 11:00 to 10:00. */
test.each([
  ["before that", ["08:00", "09:30"], ["09:00", "09:40"], 1],
  ["in the hour that the clock showed twice", ["09:50", "10:50"], ["10:10", "10:30"], 0],
  ["in that hour and before", ["09:30", "10:50"], ["09:40", "10:30"], 1],
])(
  "two servers of a model on one worker at the same time, %s",
  async (_when, one, other, found) => {
    const name = "D5 placements of one deployment at one time on one worker";
    const at = (times: string[]): string[] => times.map((time) => `2026-01-05T${time}:00Z`);
    const planting = transaction(forge.ctx.pool, async (db) => {
      await execute(db, "set local session_replication_role = replica");
      await execute(
        db,
        `insert into placements (deployment_id, placement, job_id, worker_id, state, outcome, serving_at, ended_at)
       select 'd', n, 'd' || n, 'w', 'ended', 'stopped', began, ended
       from unnest($1::timestamptz[], $2::timestamptz[]) with ordinality s (began, ended, n)`,
        [at([one[0], other[0]] as string[]), at([one[1], other[1]] as string[])],
      );
      const step = "insert into clock_steps (seen_at, by_s) values ($1, -3600)";
      await execute(db, step, [at(["10:00"])[0]]);
      expect(await all(db, IMPOSSIBLE_DEPLOYMENTS[name] ?? "")).toHaveLength(found);
      throw new Undone();
    });
    await expect(planting).rejects.toThrow(Undone);
  },
);

function billKey(): string {
  return billingRecordKey(userId, jobId);
}

function uploadKey(): string {
  return `${prefixOfKind(RAW_DATASET.kind, uploadId)}${MANIFEST_FILE}`;
}

function manifestKey(): string {
  return `${artifactPrefix("audit", artifactId)}${MANIFEST_FILE}`;
}
