/**
 * Deployments are placed, stopped and billed while Temporal is unavailable and while servers are
 * killed.
 */

import { json, text } from "node:stream/consumers";
import { createFinalActivities } from "../../activities/jobs/finish-job";
import { artifactPrefix, billingRecordKey, MANIFEST_FILE } from "../../core/artifacts/artifacts";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { syncRecordFile } from "../../services/billing/record-file";
import { deploy, read, ServingWorkers, serving, stop, until } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { asActivity, pausingStore } from "../support/late-activity";
import { countWaiting, withLock } from "../support/locks";
import { slowTest } from "../support/slow";

let forge: Forge;
const workers = new ServingWorkers();

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_HEARTBEAT_TIMEOUT_S: "5",
      FORGE_DEPLOYMENT_STOP_GRACE_S: "3",
      FORGE_CANCEL_GRACE_S: "1",
      FORGE_RECONCILE_AFTER_S: "4",
    },
    { own: ["server", "temporal"] },
  );
});

afterEach(async () => {
  await workers.end();
  await forge.endTest();
}, 90_000);

afterAll(async () => {
  await forge?.stop();
});

const workerOf = (id: string) => workers.start(forge, id);

interface Record {
  state: string;
  total_cost_usd: number;
  metrics: { deployment_lifetime_days: number };
}

test("stopped while Temporal is unavailable: the bill is closed at once, and the rest follows", async () => {
  const worker = await workerOf("a1");
  const one = await deploy(forge.user);
  await forge.own("temporal").stop();
  const { status } = await forge.user.call("POST", `/api/deployments/${one.deployment_id}/stop`);
  expect(status).toBe(202);
  const record = `/api/billing/records/${one.job_id}`;
  const closed = await forge.user.get<Record>(record);
  expect(closed.state).toBe("final");
  await waitFor("its server to stop", () => worker.stopped.includes(one.deployment_id));
  const stopping = await until(forge.user, one.deployment_id, "served nowhere", (now) => {
    return now.replicas.length === 0;
  });
  expect(stopping.status).toBe("stopping");
  await forge.stack.startTemporal();
  await until(forge.user, one.deployment_id, "stopped", (now) => now.status === "stopped", 60_000);
  expect(await forge.user.get<Record>(record)).toEqual(closed);
}, 120_000);

test("it accrues from when it can be stopped, not from a result that Temporal has not finished yet", async () => {
  await workerOf("c1");
  await forge.own("temporal").stop();
  const { job_id: jobId } = await forge.user.submit("deploy", { checkpoint_id: "ckpt" });
  const ended = await waitFor("its result, and a while after", async () => {
    const [attempt] = await all<{ ended_at: Date }>(
      forge.ctx.pool,
      "select ended_at from attempts where job_id = $1 and ended_at < now() - interval '2 s'",
      [jobId],
    );
    return attempt;
  });
  await forge.stack.startTemporal();
  const job = await untilEnded(forge.user, jobId, 60_000);
  const { deployment_id: id } = job.result as { deployment_id: string };
  const since = Date.parse((await read(forge.user, id)).created_at);
  expect(since - ended.ended_at.getTime()).toBeGreaterThanOrEqual(2_000);
  await stop(forge.user, id);
}, 90_000);

test("a process that paused with an old version of the bill does not overwrite the closed one", async () => {
  await workerOf("c2");
  const one = await deploy(forge.user);
  const late = pausingStore(forge.ctx.store);
  const bill = { job_id: one.job_id, user_id: "local" };
  const writing = syncRecordFile({ ...forge.ctx, store: late.store }, bill);
  await late.untilPaused();
  await stop(forge.user, one.deployment_id);
  late.resume();
  await writing;
  const file = await json(forge.ctx.store.read(billingRecordKey("local", one.job_id)));
  expect(file).toMatchObject({ state: "final" });
}, 90_000);

test("a process that paused before it wrote bill and manifest does not overwrite the latest ones", async () => {
  await workerOf("c3");
  const { ctx } = forge;
  const late = pausingStore(ctx.store);
  let writing: Promise<unknown> = Promise.resolve();
  // Both the server and the test run `finishJob`. Each of the two calls reads the job as
  // unfinished, and then waits for this lock before it writes the bill. After the lock is released,
  // the server's call completes the job. The test's call pauses before it writes to the store.
  const jobId = await withLock(forge, "lock table billing_records in share mode", [], async () => {
    const { job_id: id } = await forge.user.submit("deploy", { checkpoint_id: "ckpt" });
    const ended = "select from attempts where job_id = $1 and state = 'ended'";
    await waitFor("its result", async () => (await all(ctx.pool, ended, [id])).length > 0);
    const { finishJob } = createFinalActivities({ ...ctx, store: late.store });
    const input = { jobId: id, attempt: 1, requestId: "late" };
    writing = asActivity("finishJob", () => finishJob(input));
    await waitFor("both to wait", async () => (await countWaiting(forge)) >= 2);
    return id;
  });
  await late.untilPaused();
  const { result } = await untilEnded(forge.user, jobId);
  const id = String(result?.deployment_id);
  await stop(forge.user, id);
  late.resume();
  await writing;
  const key = `${artifactPrefix("deploy", id)}${MANIFEST_FILE}`;
  expect(JSON.parse(await text(ctx.store.read(key)))).toMatchObject({ status: "stopped" });
  // endTest() compares the manifest and the bill's file with their rows.
}, 90_000);

slowTest(
  "its worker dies while Temporal is unavailable: it is placed again when Temporal is back",
  async () => {
    const first = await workerOf("b1");
    const one = await deploy(forge.user);
    await workerOf("b2");
    await forge.own("temporal").stop();
    await first.die();
    await until(forge.user, one.deployment_id, "lost", ({ replicas }) => replicas.length === 0);
    const asked = await forge.user.call("GET", `${one.url}/models`);
    expect(asked).toMatchObject({
      status: 503,
      body: { error: { code: "deployment_unavailable" } },
    });
    await forge.stack.startTemporal();
    await until(
      forge.user,
      one.deployment_id,
      "on b2",
      (now) => serving(now).join() === "b2",
      60_000,
    );
    await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
    await until(forge.user, one.deployment_id, "stopped", (now) => now.status === "stopped");
  },
  120_000,
);

slowTest(
  "the server is killed right after a stop, and during a placement",
  async () => {
    const first = await workerOf("c1");
    const [one, other] = [await deploy(forge.user), await deploy(forge.user)];
    await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
    await forge.stack.server?.kill();
    const rows = await all<{ state: string }>(
      forge.ctx.pool,
      "select state from billing_records where job_id = $1",
      [one.job_id],
    );
    expect(rows).toEqual([{ state: "final" }]);
    await forge.stack.startServer();
    await until(
      forge.user,
      one.deployment_id,
      "stopped",
      (now) => now.status === "stopped",
      60_000,
    );

    await first.die();
    await until(forge.user, other.deployment_id, "being placed", ({ replicas }) => {
      return replicas.some(({ state }) => state === "starting");
    });
    await forge.stack.server?.kill();
    await forge.stack.startServer();
    await workerOf("c2");
    await until(
      forge.user,
      other.deployment_id,
      "on c2",
      (now) => serving(now).join() === "c2",
      60_000,
    );
    const { placements } = await read(forge.user, other.deployment_id);
    expect(placements).toHaveLength(2);
    await forge.user.post(`/api/deployments/${other.deployment_id}/stop`, {});
    await until(forge.user, other.deployment_id, "stopped", (now) => now.status === "stopped");
  },
  180_000,
);
