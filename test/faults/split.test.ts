import { waitFor } from "../../dev/stack/wait";
import { maybeOne } from "../../infra/database/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

/** The API and the Temporal worker as processes of their own, and the API away for longer than any worker may be silent. */
const TIMEOUT_S = 2;
const OUTAGE_S = 4 * TIMEOUT_S;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    { FORGE_HEARTBEAT_TIMEOUT_S: String(TIMEOUT_S), FORGE_DEADLINE_GRACE_S: "10" },
    { split: true },
  );
});

afterAll(async () => {
  try {
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

test("while no process serves workers, none is dead and no deadline passes", async () => {
  const worker = await forge.worker("unheard");
  worker.beat(200);
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: OUTAGE_S / 2 });
  const handed = await worker.take();
  const others = forge.servers().filter(({ name }) => name.startsWith("forge-server-"));
  for (const other of others) other.signal("SIGSTOP");
  await forge.stack.server?.kill();
  const silent = "select from workers where last_heartbeat_at < now() - make_interval(secs => $1)";
  await waitFor("the outage to have lasted", async () =>
    maybeOne(forge.ctx.pool, `${silent} and worker_id = 'unheard'`, [OUTAGE_S]),
  );
  await forge.stack.startServer();
  for (const other of others) other.signal("SIGCONT");
  expect(await forge.user.job(job_id)).toMatchObject({ status: "running", attempts: 1 });
  expect((await worker.complete(handed)).status).toBe(200);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
  worker.silence();
}, 60_000);
