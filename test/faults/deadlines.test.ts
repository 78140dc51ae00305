import { waitFor } from "../../dev/stack/wait";
import { maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

const GRACE_S = 12;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_DEADLINE_GRACE_S: String(GRACE_S) }, { own: ["server"] });
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

async function begin(id: string, more: object) {
  const worker = await forge.worker(id);
  worker.startHeartbeats();
  const { job_id: jobId } = await forge.user.submit("audit", { ...AUDIT, ...more });
  return { worker, jobId, job: await worker.take() };
}

const overdue = async (jobId: string): Promise<boolean> =>
  (await maybeOne(
    forge.ctx.pool,
    "select from attempts where job_id = $1 and deadline_at < now()",
    [jobId],
  )) !== undefined;

test("a deadline that passes while the server is down leaves the grace period to deliver the result", async () => {
  const late = await begin("late", { timeout_s: 2 });
  const never = await begin("never", { timeout_s: 2 });
  await forge.withoutServers(() =>
    waitFor("both deadlines to pass", async () => {
      return (await overdue(late.jobId)) && (await overdue(never.jobId));
    }),
  );
  // Give the fleet monitor time to run more than once before the result arrives. It must not end
  // the attempt within the grace period.
  for (let beat = 0; beat < 20; beat++) await late.worker.heartbeat({ job_id: late.jobId });
  expect((await late.worker.complete(late.job)).status).toBe(200);
  expect((await untilEnded(forge.user, late.jobId)).status).toBe("completed");
  expect((await untilEnded(forge.user, never.jobId)).error_code).toBe("timeout");
  for (const { worker } of [late, never]) worker.stopHeartbeats();
});
