/**
 * The life of a deployed model over real HTTP: its workers die, stop reporting it, or get commands.
 */

import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import {
  type Deployment,
  deploy,
  read,
  ServingWorkers,
  serving,
  stop,
  until,
} from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { ServingWorker } from "../support/serving-worker";
import { slowTest } from "../support/slow";
import type { DispatchedJob } from "../support/test-worker";

let forge: Forge;
const workers = new ServingWorkers();
const made: string[] = [];

beforeAll(async () => {
  forge = await startForge({
    FORGE_HEARTBEAT_TIMEOUT_S: "5",
    FORGE_DEPLOYMENT_MISSING_S: "1",
    FORGE_DEPLOYMENT_UNHEALTHY_S: "1",
    FORGE_DEPLOYMENT_STOP_GRACE_S: "3",
    FORGE_DEPLOYMENT_RETRY_S: "0.3",
    FORGE_CANCEL_GRACE_S: "1",
    FORGE_RECONCILE_AFTER_S: "4",
  });
});

/** Each test uses its own deployments and workers, and leaves none active. */
afterEach(async () => {
  for (const id of made.splice(0)) await stop(forge.user, id);
  await workers.end();
  await forge.endTest();
}, 60_000);

afterAll(async () => {
  await forge?.stop();
});

const workerOf = (id: string) => workers.start(forge, id);

async function deployed(more: object = {}): Promise<Deployment> {
  const deployment = await deploy(forge.user, more);
  made.push(deployment.deployment_id);
  return deployment;
}

async function ask(url: string): Promise<{ status: number; model?: string }> {
  const { status, body } = await forge.user.call<{ model?: string }>("GET", `${url}/models`);
  return body.model === undefined ? { status } : { status, model: body.model };
}

test("it is active after its result, and its address answers", async () => {
  await workerOf("a1");
  const one = await deployed();
  expect(one).toMatchObject({
    status: "active",
    url: `/api/deployments/${one.deployment_id}/v1`,
    inference_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v1$/),
    scaling: { min_replicas: 1, max_replicas: 1 },
    replicas: [{ worker_id: "a1", state: "serving", healthy: true }],
    placements: [{ placement: 1, job_id: one.job_id, state: "serving", outcome: null }],
    stopped_at: null,
    trouble: null,
  });
  // The deployment exists, and can be stopped, as soon as its job has completed.
  expect(one.created_at).toBe((await forge.user.job(one.job_id)).completed_at);
  expect(await ask(one.url)).toEqual({ status: 200, model: "a1" });
  const { deployments } = await forge.user.get<{ deployments: Deployment[] }>(
    "/api/deployments?status=active",
  );
  expect(deployments).toMatchObject([{ deployment_id: one.deployment_id, status: "active" }]);
});

test("its worker dies: another serves it, under the same address", async () => {
  const first = await workerOf("b1");
  const one = await deployed();
  const second = await workerOf("b2");
  await first.die();
  const after = await until(forge.user, one.deployment_id, "on b2", (now) => {
    return serving(now).join() === "b2";
  });
  expect(after.placements).toMatchObject([
    { placement: 1, worker_id: "b1", state: "ended", outcome: "worker_lost" },
    { placement: 2, worker_id: "b2", state: "serving", outcome: null },
  ]);
  expect(await ask(one.url)).toEqual({ status: 200, model: "b2" });
  const [job] = second.jobs;
  expect(job?.output_ids).toEqual({ deployment_id: one.deployment_id });
  expect(await forge.user.get(`/api/billing/records/${job?.job_id}`)).toMatchObject({
    state: "final",
    total_cost_usd: 0,
  });
  const artifacts = await forge.user.get<{ artifacts: object[] }>(
    `/api/jobs/${job?.job_id}/artifacts`,
  );
  expect(artifacts.artifacts).toEqual([]);
});

test.each([
  ["bootstrapping", "status = 'bootstrapping', bootstrap_seen_at = now() + interval '1 hour'"],
  ["error", "status = 'error', error_code = 'bootstrap_failed'"],
])(
  "its worker is set up again (%s) and falls silent: another serves it, and attempts are lost",
  async (status, beingSetUp) => {
    const [silent, next, holder] = [`s-${status}`, `t-${status}`, `u-${status}`];
    const { job_id: held } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 1 });
    await (await forge.worker(holder)).take();
    const first = await workerOf(silent);
    const one = await deployed();
    await execute(
      forge.ctx.pool,
      `update workers set ${beingSetUp}, bootstrap_run = 1, bootstrap_begun = 1
       where worker_id = any($1)`,
      [[silent, holder]],
    );
    await workerOf(next);
    await first.die();
    await until(forge.user, one.deployment_id, `on ${next}`, (now) => serving(now).join() === next);
    expect(await untilEnded(forge.user, held)).toMatchObject({ error_code: "worker_lost" });
    for (const id of [silent, holder]) {
      expect(await forge.user.get(`/api/workers/${id}`)).toMatchObject({ status });
    }
  },
);

test("a worker that comes back after a network failure gets the command to stop it", async () => {
  const first = await workerOf("c1");
  const one = await deployed();
  await first.die(true);
  await workerOf("c2");
  await until(forge.user, one.deployment_id, "on c2", (now) => serving(now).join() === "c2");
  const back = new ServingWorker(await forge.worker("c1"));
  for (const [id, model] of first.served) back.served.set(id, model);
  workers.all.push(back.start());
  await waitFor("the zombie to stop it", () => back.stopped.includes(one.deployment_id));
  expect(serving(await read(forge.user, one.deployment_id))).toEqual(["c2"]);
});

test("a deployment that its living worker no longer reports, or reports as unhealthy, is placed again", async () => {
  const first = await workerOf("d1");
  const one = await deployed();
  const id = one.deployment_id;
  const second = await workerOf("d2");
  first.hidden.add(id);
  const moved = await until(forge.user, id, "missed", ({ placements }) => {
    return placements.length > 1 && placements.at(-1)?.state === "serving";
  });
  expect(moved.placements[0]).toMatchObject({ worker_id: "d1", outcome: "missing" });
  first.hidden.clear();
  const now = serving(moved).join() === "d1" ? first : second;
  now.unhealthy.add(id);
  await until(forge.user, id, "unhealthy", ({ replicas }) => {
    return replicas.some((one) => one.state === "serving" && !one.healthy);
  });
  now.unhealthy.clear();
  await until(forge.user, id, "well again", ({ replicas }) => {
    return replicas.every((one) => one.healthy);
  });
  now.unhealthy.add(id);
  const ended = await until(forge.user, id, "given up", ({ placements }) =>
    placements.some(({ outcome }) => outcome === "unhealthy"),
  );
  now.unhealthy.clear();
  expect(ended.status).toBe("active");
  await until(forge.user, id, "well", ({ replicas }) => replicas.some((one) => one.healthy));
});

test("a decommissioned worker loses it", async () => {
  await workerOf("e1");
  const one = await deployed();
  await workerOf("e2");
  await forge.user.call("DELETE", "/api/workers/e1");
  const after = await until(forge.user, one.deployment_id, "on e2", (now) => {
    return serving(now).join() === "e2";
  });
  expect(after.placements[0]).toMatchObject({ outcome: "worker_lost" });
});

test("a failed placement is retried with growing delays, and the deployment shows it", async () => {
  const first = await workerOf("f1");
  const one = await deployed();
  const second = await workerOf("f2");
  second.fails = 2;
  await first.die();
  const troubled = await until(forge.user, one.deployment_id, "in trouble", (now) => {
    return now.trouble !== null;
  });
  expect(troubled).toMatchObject({
    status: "active",
    trouble: expect.stringContaining("out of luck"),
  });
  // Wait for both conditions. The API reads the deployment before its placements, so a response may
  // show the new placement together with the old `trouble`.
  const after = await until(forge.user, one.deployment_id, "on f2", (now) => {
    return serving(now).join() === "f2" && now.trouble === null;
  });
  expect(after.placements.map(({ outcome }) => outcome)).toEqual([
    "worker_lost",
    "failed",
    "failed",
    null,
  ]);
});

test("it has as many servers as requested, each on its own worker; more while workers are idle", async () => {
  await workerOf("g1");
  const one = await deployed({ min_replicas: 2, max_replicas: 3 });
  const id = one.deployment_id;
  await until(forge.user, id, "waiting for a second worker", ({ replicas }) => {
    return replicas.some(({ state }) => state === "starting");
  });
  await workerOf("g2");
  await until(forge.user, id, "on two", (now) => serving(now).sort().join() === "g1,g2");
  await workerOf("g3");
  await until(forge.user, id, "on three", (now) => serving(now).sort().join() === "g1,g2,g3");
  await workerOf("g4");
  const models = new Set<string | undefined>();
  await waitFor("all three to get requests", async () => {
    models.add((await ask(one.url)).model);
    return models.size === 3;
  });
  // Stop one model server. Until its worker notices that, the proxy must use the other servers.
  const broken = workers.all[0]?.served.get(id);
  await broken?.stop();
  for (let n = 0; n < 10; n++) expect((await ask(one.url)).status).toBe(200);
  const scaled = await forge.user.call<Deployment>("PATCH", `/api/deployments/${id}`, {
    min_replicas: 1,
    max_replicas: 1,
  });
  expect(scaled).toMatchObject({
    status: 200,
    body: { scaling: { min_replicas: 1, max_replicas: 1 } },
  });
  await until(forge.user, id, "on one", ({ replicas }) => replicas.length === 1);
  const wrong = await forge.user.call("PATCH", `/api/deployments/${id}`, { min_replicas: 2 });
  expect(wrong).toMatchObject({ status: 400, body: { error: { param: "min_replicas" } } });
});

test("the limits on servers are checked at submission", async () => {
  for (const replicas of [{ min_replicas: 0 }, { max_replicas: 17 }, { min_replicas: 2.5 }]) {
    const answer = await forge.user.call("POST", "/api/jobs/deploy", {
      checkpoint_id: "c",
      ...replicas,
    });
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { param: Object.keys(replicas)[0] } },
    });
  }
  const turned = { checkpoint_id: "c", min_replicas: 3, max_replicas: 2 };
  expect(await forge.user.call("POST", "/api/jobs/deploy", turned)).toMatchObject({
    status: 400,
    body: { error: { param: "min_replicas" } },
  });
});

test("as a teacher it resolves to its current server, while it has one", async () => {
  const first = await workerOf("t1");
  const one = await deploy(forge.user);
  const id = one.deployment_id;
  const reader = await forge.worker("reader");
  reader.startHeartbeats(200);
  const teacherOf = async (): Promise<object | undefined> => {
    await forge.user.submit("generate", { task: "t", size: 1, teacher: id });
    const job = (await reader.take()) as DispatchedJob & { inputs: { param: string }[] };
    await reader.fail(job);
    await untilEnded(forge.user, job.job_id);
    return job.inputs.find(({ param }) => param === "teacher");
  };
  // Worker t1 keeps serving the deployment, but gets no other jobs.
  await execute(forge.ctx.pool, "update workers set draining = true where worker_id = 't1'");
  expect(await teacherOf()).toMatchObject({ inference_url: one.inference_url });
  await first.die();
  await until(forge.user, id, "lost", ({ inference_url: url }) => url === null);
  // Forge places the deployment on the worker `reader`.
  const again = await reader.take();
  expect(again).toMatchObject({ job_type: "deploy", output_ids: { deployment_id: id } });
  const second = await forge.worker("reader-2");
  second.startHeartbeats(200);
  const { job_id } = await forge.user.submit("generate", { task: "t", size: 1, teacher: id });
  const asked = (await second.take()) as DispatchedJob & { inputs: object[] };
  expect(asked.job_id).toBe(job_id);
  expect(asked.inputs).toMatchObject([{ param: "teacher", withheld: true, retryable: true }]);
  await second.fail(asked);
  await reader.complete(again, { result: { inference_url: "http://elsewhere:1/v1" } });
  await until(forge.user, id, "on the reader", (now) => serving(now).join() === "reader");
  expect(await teacherOf()).toMatchObject({ inference_url: "http://elsewhere:1/v1" });
  await stop(forge.user, id);
  expect(await teacherOf()).toMatchObject({
    withheld: true,
    reason: `deployment ${id} is stopped`,
  });
  reader.stopHeartbeats();
  second.stopHeartbeats();
});

describe("stop", () => {
  test("closes the bill at once and once; its servers stop, and its artifact can be deleted", async () => {
    const worker = await workerOf("h1");
    const one = await deploy(forge.user);
    const path = `/api/deployments/${one.deployment_id}`;
    const record = `/api/billing/records/${one.job_id}`;
    const open = await forge.user.get<{ metrics: { deployment_lifetime_days: number } }>(record);
    expect(open).toMatchObject({ state: "accruing" });
    expect(open.metrics.deployment_lifetime_days).toBeGreaterThan(0);
    expect(await forge.user.get("/api/billing/summary")).toMatchObject({
      accruing_usd: expect.any(Number),
    });
    const stops = await Promise.all(
      Array.from({ length: 20 }, () => forge.user.call<Deployment>("POST", `${path}/stop`)),
    );
    for (const { status, body } of stops) {
      expect([200, 202]).toContain(status);
      expect(body.stop_requested_at).toBe(stops[0]?.body.stop_requested_at);
    }
    const closed = await forge.user.get<{ total_cost_usd: number }>(record);
    expect(closed).toMatchObject({ state: "final" });
    const stopped = await until(forge.user, one.deployment_id, "stopped", ({ status }) => {
      return status === "stopped";
    });
    expect(worker.stopped).toContain(one.deployment_id);
    expect(stopped).toMatchObject({
      cost_usd: closed.total_cost_usd,
      replicas: [],
      placements: [{ state: "ended", outcome: "stopped" }],
    });
    expect(await forge.user.call("POST", `${path}/stop`)).toMatchObject({ status: 200 });
    expect(await forge.user.call("GET", `${path}/v1/models`)).toMatchObject({
      status: 409,
      body: { error: { code: "deployment_stopped" } },
    });
    expect(await forge.user.call("DELETE", `/api/artifacts/${one.deployment_id}`)).toMatchObject({
      status: 200,
    });
  });

  test("while a placement waits for a worker: its job is cancelled", async () => {
    const first = await workerOf("i1");
    const one = await deploy(forge.user);
    await first.die();
    const waiting = await until(forge.user, one.deployment_id, "waiting", ({ replicas }) => {
      return replicas.some(({ state }) => state === "starting");
    });
    await stop(forge.user, one.deployment_id);
    const jobId = String(waiting.placements.at(-1)?.job_id);
    await waitFor("its job to end", async () => {
      return (await forge.user.job(jobId)).error_code === "cancelled";
    });
  });

  test("with a worker that does not obey: it counts as stopped after the grace period", async () => {
    const worker = await workerOf("j1");
    worker.obeys = false;
    const one = await deploy(forge.user);
    await stop(forge.user, one.deployment_id);
    expect(worker.served.size).toBe(1);
    worker.obeys = true;
    await waitFor("it to get the command again", () => worker.stopped.includes(one.deployment_id));
  });

  test("races with its worker's death: one end, one bill", async () => {
    const worker = await workerOf("k1");
    const one = await deploy(forge.user);
    await worker.die();
    await waitFor("the death", async () => {
      const rows = await all(
        forge.ctx.pool,
        "select from workers where worker_id = 'k1' and status = 'dead'",
      );
      void forge.user.call("POST", `/api/deployments/${one.deployment_id}/stop`);
      return rows.length === 1;
    });
    await stop(forge.user, one.deployment_id);
  });

  test("as a cancel in Temporal's UI", async () => {
    await workerOf("l1");
    const one = await deploy(forge.user);
    const handle = forge.ctx.temporal.workflow.getHandle(`deployment:${one.deployment_id}`);
    await waitFor("its workflow", async () => (await handle.describe()).status.name === "RUNNING");
    await handle.cancel();
    await until(forge.user, one.deployment_id, "stopped", ({ status }) => status === "stopped");
    await waitFor("its end", async () => (await handle.describe()).status.name === "COMPLETED");
  });
});

slowTest("a manually terminated workflow is restarted", async () => {
  const first = await workerOf("m1");
  const one = await deployed();
  const handle = forge.ctx.temporal.workflow.getHandle(`deployment:${one.deployment_id}`);
  await waitFor("its workflow", async () => (await handle.describe()).status.name === "RUNNING");
  await handle.terminate("by hand");
  await waitFor("another run", async () => (await handle.describe()).status.name === "RUNNING");
  await workerOf("m2");
  await first.die();
  await until(forge.user, one.deployment_id, "on m2", (now) => serving(now).join() === "m2");
});
