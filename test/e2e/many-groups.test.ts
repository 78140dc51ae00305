/**
 * One pass of the scheduler reads at most 2,000 requirement groups. Here more are queued, and a
 * poll must consider all of them.
 */

import { ApiClient } from "../../dev/api-client";
import { execute } from "../../platform/postgres/pool";
import { ensureUser } from "../../services/accounts/users";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { NO_NEEDS } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";
import { createTenant } from "../support/tenants";
import { TestWorker } from "../support/test-worker";

const TENANTS = 11;
/**
 * The number of requirement groups of each tenant: the maximum by default
 * (FORGE_MAX_QUEUED_SHAPES).
 */
const GROUPS_OF_EACH = 200;

let forge: Forge;
/** A worker key of the operator: its workers serve all tenants. */
let operator: ApiClient;

beforeAll(async () => {
  // The reconciler starts workflows for jobs that have been unchanged for this many seconds. The
  // jobs of this test need no workflow, so the time is longer than the test.
  forge = await startForge({ FORGE_RECONCILE_AFTER_S: "600" });
  const { key } = await forge.admin.post<{ key: string }>("/api/auth/api-keys", {
    scope: "worker",
  });
  operator = new ApiClient(forge.stack.apiUrl, key);
  const { pool } = forge.ctx;
  for (let tenant = 0; tenant < TENANTS; tenant++) {
    const userId = `m-${10 + tenant}`;
    await ensureUser(pool, userId, userId);
    const groups = Array.from({ length: GROUPS_OF_EACH }, (_, n) => {
      const needs = { ...NO_NEEDS, userId, gpuCount: 1, memoryGb: n + 1 };
      return { ...needs, jobId: `many_${userId}_${n}`, priority: 0, queuedAt: n };
    });
    await queueJobs(pool, groups);
  }
  await pool.query("analyze jobs, attempts");
}, 60_000);

afterAll(async () => {
  try {
    const { pool } = forge.ctx;
    await execute(pool, "delete from attempts where job_id like 'many_%'");
    await execute(pool, "delete from job_events where job_id like 'many_%'");
    await execute(pool, "delete from jobs where job_id like 'many_%'");
    await forge.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

// Groups are ordered by tenant: the group of a-first is before the 2,200 others, and the group of
// z-last after them.
test.each(["a-first", "z-last"])(
  "a shared worker's first poll gets the only job that fits it, of tenant %s",
  async (id) => {
    const { user } = await createTenant(forge, id);
    const { job_id } = await user.submit("audit", { ...AUDIT, resources: { tags: [id] } });
    const worker = new TestWorker(operator, `w-${id}`);
    await worker.register(undefined, { tags: [id] });
    const job = await worker.next();
    expect(job?.job_id).toBe(job_id);
    if (job) await worker.complete(job);
    expect((await untilEnded(user, job_id)).status).toBe("completed");
  },
);
