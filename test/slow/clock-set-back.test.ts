/**
 * Sets the database's clock, and checks the effects on stored times. Other files check the times of
 * attempts and bills.
 */

import { jobWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { deploy, serving, stop, until } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { ServingWorker } from "../support/serving-worker";
import { untilAllCheckClock, useSettableClock } from "../support/settable-clock";

const DAY_S = 86_400;
const GRACE_S = 6;

let forge: Forge;
let setClock: (byS: number) => Promise<void>;
let workers = 0;
let servers: ServingWorker[] = [];

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_CANCEL_GRACE_S: String(GRACE_S),
      FORGE_DEPLOYMENT_MISSING_S: "1",
      FORGE_RECONCILE_AFTER_S: "1",
      FORGE_RATE_LIMIT_PER_MINUTE: "3000",
      FORGE_RATE_LIMIT_BURST: "200",
    },
    { own: ["server"] },
  );
  setClock = await useSettableClock(forge);
}, 120_000);

beforeEach(async () => {
  await execute(forge.ctx.pool, "update workers set available_until = null");
});

afterEach(async () => {
  await Promise.all(servers.map((server) => server.die()));
  servers = [];
  await execute(forge.ctx.pool, "delete from rate_buckets");
  await setAndWait(0);
});

afterAll(async () => {
  await forge?.stop();
});

const ofSteps = async (): Promise<number> =>
  (
    await maybeOne<{ s: number }>(
      forge.ctx.pool,
      "select coalesce(sum(by_s), 0)::float8 as s from clock_steps",
    )
  )?.s ?? 0;

/** Sets the clock and waits until all servers have noticed. */
async function setAndWait(byS: number): Promise<void> {
  await setClock(byS);
  await waitFor("the step to be recorded", async () => Math.abs((await ofSteps()) - byS) < 5);
  await untilAllCheckClock(forge);
}

async function begin() {
  const worker = await forge.worker(`w${workers++}`);
  worker.startHeartbeats();
  const { job_id: jobId } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 3_600 });
  return { worker, jobId, job: await worker.take() };
}

async function serve(id: string): Promise<ServingWorker> {
  const server = new ServingWorker(await forge.worker(id)).start();
  servers.push(server);
  return server;
}

test.each([-DAY_S, DAY_S])(
  "a cancel right after an unnoticed step of %i s gets exactly its grace period",
  async (byS) => {
    const { worker, jobId } = await begin();
    await setClock(byS);
    await forge.user.post(`/api/jobs/${jobId}/cancel`, {});
    await setAndWait(byS);
    const left = await maybeOne<{ s: number }>(
      forge.ctx.pool,
      "select extract(epoch from cancel_by - now())::float8 as s from attempts where job_id = $1",
      [jobId],
    );
    worker.stopHeartbeats();
    expect(left?.s).toBeGreaterThan(0);
    expect(left?.s).toBeLessThanOrEqual(GRACE_S);
    expect((await untilEnded(forge.user, jobId)).error_code).toBe("cancelled");
  },
  120_000,
);

test("a server that went missing before the clock was set back is replaced", async () => {
  const server = await serve("first");
  const { deployment_id: id } = await deploy(forge.user);
  await serve("second");
  await setAndWait(DAY_S);
  server.hidden.add(id);
  await waitFor("it to be missed", async () =>
    maybeOne(
      forge.ctx.pool,
      "select from placements where deployment_id = $1 and missing_since is not null",
      [id],
    ),
  );
  await setClock(0);
  await until(forge.user, id, "placed again", ({ placements }) => placements.length > 1);
  server.hidden.clear();
  await stop(forge.user, id);
}, 120_000);

test("a placement made while the clock was wrong breaks no invariant", async () => {
  const server = await serve("third");
  const { deployment_id: id } = await deploy(forge.user);
  await serve("fourth");
  await setAndWait(DAY_S);
  server.hidden.add(id);
  await until(
    forge.user,
    id,
    "placed again",
    (found) => found.placements.length > 1 && serving(found).length === 1,
    60_000,
  );
  await setAndWait(0);
  await stop(forge.user, id);
  await forge.endTest();
}, 120_000);

test("a tenant that sent requests before the clock was set back is not rate-limited for it", async () => {
  const ask = async (): Promise<number> =>
    (await forge.user.call("GET", "/api/jobs?limit=1")).status;
  await setAndWait(DAY_S);
  await waitFor("its bucket to be empty", async () =>
    (await Promise.all(Array.from({ length: 50 }, ask))).includes(429),
  );
  await setAndWait(0);
  await waitFor("it to be answered", async () => (await ask()) === 200);
  const rows = await all<{ s: number }>(
    forge.ctx.pool,
    "select extract(epoch from refilled_at - now())::float8 as s from rate_buckets",
  );
  for (const { s } of rows) expect(s).toBeLessThan(60);
}, 120_000);

test("a lost workflow is restarted although its job changed before the clock was set back", async () => {
  await setAndWait(DAY_S);
  const { worker, jobId, job } = await begin();
  const workflow = forge.ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));
  const first = await waitFor("its workflow", () => workflow.describe());
  await setAndWait(0);
  await workflow.terminate("a slip of the mouse");
  await waitFor(
    "another run",
    async () => {
      const { status, runId } = await workflow.describe();
      return status.name === "RUNNING" && runId !== first.runId;
    },
    { timeoutMs: 60_000 },
  );
  await worker.complete(job);
  worker.stopHeartbeats();
  expect((await untilEnded(forge.user, jobId)).status).toBe("completed");
}, 120_000);
