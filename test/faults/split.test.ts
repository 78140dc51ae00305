/**
 * The API and the Temporal worker as separate processes, and the API down for longer than the
 * heartbeat time-out.
 */

import { waitFor } from "../../dev/stack/wait";
import { all, maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

const TIMEOUT_S = 3;
const OUTAGE_S = 10;

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

test("while no process serves workers, no worker is marked dead and no deadline passes", async () => {
  const worker = await forge.worker("unheard");
  worker.startHeartbeats(200);
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: OUTAGE_S / 2 });
  const dispatched = await worker.take();
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
  expect((await worker.complete(dispatched)).status).toBe(200);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
  worker.stopHeartbeats();
}, 60_000);

test("while no request arrives, no worker is marked dead; a silent one is, once others send heartbeats", async () => {
  const { pool } = forge.ctx;
  const [kept, gone] = await Promise.all([forge.worker("kept"), forge.worker("gone")]);
  for (const worker of [kept, gone]) worker.startHeartbeats(200);
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await kept.take();
  for (const worker of [kept, gone]) worker.stopHeartbeats();
  // Simulate a cut network: the test sends no requests from here on, and reads the database
  // directly.
  const silent = `select from workers where worker_id = any('{kept,gone}')
    and last_heartbeat_at < now() - make_interval(secs => $1)`;
  await waitFor("both to be silent for long", async () => {
    return (await all(pool, silent, [2 * TIMEOUT_S])).length === 2;
  });
  const dead =
    "select worker_id from workers where status = 'dead' and worker_id in ('kept', 'gone')";
  expect(await all(pool, dead)).toEqual([]);
  kept.startHeartbeats(200);
  await waitFor("the other to be dead", async () => (await all(pool, dead)).length > 0);
  expect(await all(pool, dead)).toEqual([{ worker_id: "gone" }]);
  expect((await kept.complete(dispatched)).status).toBe(200);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
  kept.stopHeartbeats();
}, 60_000);
