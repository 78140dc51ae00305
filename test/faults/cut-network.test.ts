import { waitFor } from "../../dev/stack/wait";
import { maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

const TIMEOUT_S = 8;
const GRACE_S = 5;
/**
 * How long the test sends no request, in seconds. The test proves that the grace period begins when
 * requests arrive again, not at the deadline. So the value is longer than JOB_S + GRACE_S: a grace
 * period that began at the deadline would be over before requests arrive again. The value is also
 * shorter than ten heartbeat time-outs: after that time, the fleet monitor enforces deadlines even
 * if no request arrives.
 */
const CUT_S = 3 * GRACE_S;
/**
 * The job's time limit, in seconds. The fleet monitor notices the cut only after half a heartbeat
 * time-out without a request. Until then, it enforces deadlines as usual. So the time limit is
 * longer than half a heartbeat time-out.
 */
const JOB_S = TIMEOUT_S - 2;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({
    FORGE_HEARTBEAT_TIMEOUT_S: String(TIMEOUT_S),
    FORGE_DEADLINE_GRACE_S: String(GRACE_S),
  });
});

afterAll(async () => {
  try {
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

test("a deadline that passes while no request comes in leaves the grace period to deliver the result", async () => {
  const [holds, idle] = await Promise.all([forge.worker("holds"), forge.worker("idle")]);
  for (const worker of [holds, idle]) worker.startHeartbeats(500);
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: JOB_S });
  const dispatched = await holds.take();
  for (const worker of [holds, idle]) worker.stopHeartbeats();
  // Simulate a cut network: the test sends no requests from here on, and reads the database
  // directly.
  const silent = `select from workers where worker_id = 'holds'
    and last_heartbeat_at < now() - make_interval(secs => $1)`;
  const isSilent = async () => maybeOne(forge.ctx.pool, silent, [CUT_S]);
  await waitFor("the cut to have lasted", isSilent, { timeoutMs: 3_000 * CUT_S });
  // After the outage, the worker's heartbeat arrives before its result.
  for (const worker of [holds, idle]) worker.startHeartbeats(500);
  expect((await holds.complete(dispatched)).status).toBe(200);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
  for (const worker of [holds, idle]) worker.stopHeartbeats();
}, 90_000);
