import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, isOffered, untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";
import { TestWorker } from "../support/test-worker";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({
    FORGE_HEARTBEAT_TIMEOUT_S: "8",
    FORGE_DEAF_AFTER_S: "5",
    FORGE_ASSIGNMENT_TIMEOUT_S: "5",
  });
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

interface Shown {
  status: string;
  status_reason: string | null;
  error_code: string | null;
  draining: boolean;
}

const show = async (id: string): Promise<Shown> => await forge.admin.get(`/api/workers/${id}`);

const until = (id: string, wanted: Partial<Shown>): Promise<Shown> =>
  waitFor(`${id} to be ${JSON.stringify(wanted)}`, async () => {
    const worker = await show(id);
    const keys = Object.keys(wanted) as (keyof Shown)[];
    return keys.every((key) => worker[key] === wanted[key]) && worker;
  });

/** Submits a job that fails on this worker, which must be the only available one. */
async function fail(worker: TestWorker, user = forge.user): Promise<void> {
  const { job_id } = await user.submit("audit", AUDIT);
  await worker.fail(await worker.take());
  await untilEnded(user, job_id);
}

async function succeed(worker: TestWorker): Promise<void> {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await worker.complete(await worker.take());
  await untilEnded(forge.user, job_id);
}

describe("drain", () => {
  test("lets the worker finish its job, and gives it no other", async () => {
    const worker = await forge.worker("d-busy");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    expect(await forge.user.call("POST", "/api/workers/d-busy/drain")).toMatchObject({
      status: 202,
      body: { status: "busy", draining: true },
    });
    expect((await worker.heartbeat()).commands).toEqual([{ type: "drain" }]);
    await worker.complete(job);
    await untilEnded(forge.user, job_id);
    const { job_id: next } = await forge.user.submit("audit", AUDIT);
    expect(await worker.ask()).toEqual({ job_id: null, commands: [{ type: "drain" }] });
    const other = await forge.worker("d-other");
    const dispatched = await other.take();
    expect(dispatched.job_id).toBe(next);
    await other.complete(dispatched);
    await untilEnded(forge.user, next);
  });

  test("ends the waiting poll, in another process too", async () => {
    const elsewhere = await forge.stack.startAnotherServer();
    const worker = await forge.worker("d-parked");
    const poll = worker.ask(30);
    await waitFor("the poll to wait", () => isOffered(forge.ctx.pool, "d-parked"));
    const asked = performance.now();
    await fetch(`${elsewhere}/api/workers/d-parked/drain`, {
      method: "POST",
      headers: { "x-service-api-key": forge.stack.keys.userKey },
    });
    expect(await poll).toEqual({ job_id: null, commands: [{ type: "drain" }] });
    expect(performance.now() - asked).toBeLessThan(5_000);
  });

  test("ends with another boot, and not with the same one", async () => {
    const worker = await forge.worker("d-again");
    await worker.register(undefined, { boot_id: "one" });
    await forge.user.post("/api/workers/d-again/drain", {});
    await worker.register(undefined, { boot_id: "one" });
    expect((await show("d-again")).draining).toBe(true);
    await worker.register(undefined, { boot_id: "two" });
    expect((await show("d-again")).draining).toBe(false);
  });
});

describe("decommission", () => {
  test("moves the worker's job to another, and commands its agent to exit", async () => {
    const worker = await forge.worker("x-busy");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    expect(await forge.user.call("DELETE", "/api/workers/x-busy")).toMatchObject({
      status: 200,
      body: { worker_id: "x-busy", decommissioned: true },
    });
    expect(await worker.heartbeat({ job_id, attempt: 1 })).toEqual({
      worker_id: "x-busy",
      status: "dead",
      commands: [{ type: "drain" }, { type: "job_lost", job_id, attempt: 1 }],
    });
    expect((await worker.complete(job)).status).toBe(409);
    expect((await forge.user.call("GET", "/api/workers/x-busy")).status).toBe(404);
    const { workers } = await forge.user.get<{ workers: { worker_id: string }[] }>("/api/workers");
    expect(workers.map((each) => each.worker_id)).not.toContain("x-busy");
    const heir = await forge.worker("x-heir");
    const dispatched = await heir.take();
    expect(dispatched).toMatchObject({ job_id, attempt: 2 });
    await heir.complete(dispatched);
    await untilEnded(forge.user, job_id);
    // Registering again returns a decommissioned worker to service.
    expect((await worker.register()).status).toBe(201);
    expect((await show("x-busy")).status).toBe("idle");
  });

  test("of another tenant's worker is a 404", async () => {
    const other = await createTenant(forge, "other");
    await forge.worker("x-mine");
    for (const [method, path] of [
      ["DELETE", "/api/workers/x-mine"],
      ["POST", "/api/workers/x-mine/drain"],
    ] as const) {
      expect((await other.user.call(method, path)).status).toBe(404);
    }
    expect((await show("x-mine")).draining).toBe(false);
  });
});

describe("error", () => {
  test("is the state of a worker that sends heartbeats and does not poll, until it polls", async () => {
    const worker = await forge.worker("e-deaf");
    worker.startHeartbeats();
    expect(await until("e-deaf", { status: "error" })).toMatchObject({
      error_code: "unresponsive",
      status_reason: "no poll for 5 s, although it sends heartbeats",
    });
    await forge.user.submit("audit", AUDIT).then(async ({ job_id }) => {
      const dispatched = await worker.take();
      expect(dispatched.job_id).toBe(job_id);
      await worker.complete(dispatched);
      await untilEnded(forge.user, job_id);
    });
    worker.stopHeartbeats();
  });

  test("is not the state of a worker that waits, is busy or is drained", async () => {
    const waiting = await forge.worker("e-parked");
    const drained = await forge.worker("e-drained");
    const busy = await forge.worker("e-busy");
    const all = [waiting, drained, busy];
    for (const worker of all) worker.startHeartbeats();
    await forge.user.post("/api/workers/e-drained/drain", {});
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await busy.take();
    // An idle worker that has not polled for FORGE_DEAF_AFTER_S (5 s) is set to error. This poll
    // waits for longer, and its worker must stay in service.
    const poll = waiting.next(9);
    const often = await forge.worker("e-often");
    often.startHeartbeats();
    let open = true;
    const polling = (async () => {
      while (open) await often.next(1);
    })();
    const idler = await forge.worker("e-idler");
    idler.startHeartbeats();
    await until("e-idler", { status: "error" });
    for (const id of ["e-parked", "e-often", "e-drained"])
      expect((await show(id)).status).toBe("idle");
    expect((await show("e-busy")).status).toBe("busy");
    await busy.complete(job);
    await untilEnded(forge.user, job_id);
    open = false;
    await Promise.all([poll, polling]);
    for (const worker of [...all, often, idler]) worker.stopHeartbeats();
  });

  test("follows three failures in a row while others succeed; not earlier, and not otherwise", async () => {
    const bad = await forge.worker("e-failing");
    const good = await forge.worker("e-good");
    await fail(bad);
    await fail(bad);
    await fail(bad);
    // No other worker has succeeded since the first failure, so the jobs may be the cause. The
    // worker stays in service.
    expect((await show("e-failing")).status).toBe("idle");
    await succeed(good);
    await fail(bad);
    expect(await show("e-failing")).toMatchObject({
      status: "error",
      error_code: "failing",
      status_reason: "4 attempts in a row failed or were lost here while other workers succeeded",
    });
    // A poll does not end the status `error`. Registering again does, and resets the count of
    // failures.
    const { job_id } = await forge.user.submit("audit", AUDIT);
    expect(await bad.next()).toBeUndefined();
    await good.complete(await good.take());
    await untilEnded(forge.user, job_id);
    expect((await bad.register()).body).toMatchObject({ status: "idle" });
    await fail(bad);
    await succeed(bad);
    await fail(bad);
    await succeed(good);
    await fail(bad);
    expect((await show("e-failing")).status).toBe("idle");
  });

  test("does not follow a job that fails on every worker", async () => {
    const workers = [await forge.worker("e-first"), await forge.worker("e-second")];
    const good = await forge.worker("e-third");
    for (let n = 0; n < 4; n++) {
      const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
      for (const worker of workers) await worker.fail(await worker.take(), { retryable: true });
      await untilEnded(forge.user, job_id);
      await succeed(good);
    }
    for (const { id } of workers) expect((await show(id)).status).toBe("idle");
  });

  test("of a shared worker follows failures of several tenants, not of one", async () => {
    const { key } = await forge.admin.post<{ key: string }>("/api/auth/api-keys", {
      scope: "worker",
    });
    const worker = new TestWorker(new ApiClient(forge.stack.apiUrl, key), "e-shared");
    await worker.register();
    const good = await forge.worker("e-own");
    const others = await Promise.all(["ann", "ben"].map((id) => createTenant(forge, id)));
    for (let n = 0; n < 4; n++) {
      await fail(worker);
      await succeed(good);
    }
    expect((await show("e-shared")).status).toBe("idle");
    for (const { user } of others) await fail(worker, user);
    expect(await show("e-shared")).toMatchObject({ status: "error", error_code: "failing" });
  });

  test("follows three jobs lost by restarts, until the next restart", async () => {
    const worker = await forge.worker("e-crashing");
    const good = await forge.worker("e-fine");
    for (const n of [1, 2, 3]) {
      const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 1 });
      await worker.take();
      const answer = await worker.register(undefined, { boot_id: `boot-${n}` });
      expect(answer.body).toMatchObject({ status: n === 3 ? "error" : "idle" });
      await untilEnded(forge.user, job_id);
      if (n < 3) await succeed(good);
    }
    await worker.register(undefined, { boot_id: "boot-4" });
    expect((await show("e-crashing")).status).toBe("idle");
  });

  test("reported by the worker itself stays until an admin resets it", async () => {
    const worker = await forge.worker("e-broken");
    await worker.heartbeat({ status: "error", reason: "no CUDA device" });
    expect(await show("e-broken")).toMatchObject({
      status: "error",
      error_code: "reported",
      status_reason: "no CUDA device",
    });
    await worker.heartbeat();
    await worker.next();
    expect((await show("e-broken")).status).toBe("error");
    const asUser = await forge.user.call("POST", "/api/workers/e-broken/reset");
    expect(asUser.status).toBe(403);
    expect(await forge.admin.call("POST", "/api/workers/e-broken/reset")).toMatchObject({
      status: 200,
      body: { status: "idle", status_reason: null, error_code: null },
    });
  });

  test("survives death: a worker in error that sends heartbeats again is still in error", async () => {
    const worker = await forge.worker("e-undead");
    await worker.heartbeat({ status: "error", reason: "ECC errors" });
    await until("e-undead", { status: "dead" });
    expect((await worker.heartbeat()).status).toBe("error");
  });
});
