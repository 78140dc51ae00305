import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { oneFormOf, slowTest } from "../support/slow";
import type { TestWorker } from "../support/test-worker";

const SILENCE_MS = 6_000;

let forge: Forge;
let worker: TestWorker;

beforeAll(async () => {
  forge = await startForge(
    { FORGE_HEARTBEAT_TIMEOUT_S: String(SILENCE_MS / 1_000) },
    { own: ["server", "postgres", "temporal"] },
  );
  worker = await forge.worker("w");
  worker.startHeartbeats();
});

afterAll(async () => {
  worker?.stopHeartbeats();
  await forge?.stop();
});

slowTest(
  "a start that Temporal refuses blocks no other job, and is retried",
  async () => {
    await forge.own("temporal").kill();
    const refused = await forge.user.submit("audit", AUDIT);
    await forge.stack.server?.kill();
    // Make the request that starts the job's workflow larger than Temporal accepts.
    await execute(
      forge.ctx.pool,
      "update jobs set request_id = repeat('x', 5000000) where job_id = $1",
      [refused.job_id],
    );
    await forge.stack.startTemporal();
    await forge.stack.startServer();
    const said = (what: string): boolean =>
      forge.servers().some((server) => server.logTail(400).includes(what));
    await waitFor("the refusal to be logged", () => said("outbox entry not delivered"));
    expect(await answerToLargeStart()).toMatch(/RESOURCE_EXHAUSTED/);
    const dispatched = await worker.take();
    expect(dispatched.job_id).toBe(refused.job_id);
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await worker.complete(dispatched);
    await worker.complete(await worker.take());
    expect((await untilEnded(forge.user, job_id)).status).toBe("completed");
    expect((await forge.user.job(refused.job_id)).status).toBe("running");
    await execute(forge.ctx.pool, "update jobs set request_id = 'short' where job_id = $1", [
      refused.job_id,
    ]);
    await execute(forge.ctx.pool, "update outbox set due_at = now()");
    expect((await untilEnded(forge.user, refused.job_id)).status).toBe("completed");
    await forge.proveInvariants();
  },
  120_000,
);

/** Waits until the fleet monitor has checked all workers once more. */
async function untilMonitorLooks(): Promise<void> {
  const series = 'forge_loop_last_success_timestamp_seconds{loop="fleet-monitor"}';
  const look = async (): Promise<string | undefined> => {
    const answer = await fetch(`${forge.stack.apiUrl}/metrics`, {
      headers: { "x-service-api-key": forge.stack.keys.adminKey },
    });
    return (await answer.text()).split("\n").find((line) => line.startsWith(series));
  };
  const before = await waitFor("the metrics", look);
  await waitFor("the fleet monitor to look", async () => {
    const now = await look();
    return now !== undefined && now !== before;
  });
}

/**
 * Returns Temporal's own error for a start that is too large. Uses a client without retries,
 * because Forge's client would retry until its deadline, and report only the deadline.
 */
async function answerToLargeStart(): Promise<string> {
  const { temporalAddress: address } = forge.stack;
  const connection = await Connection.connect({ address, interceptors: [] });
  try {
    const { namespace } = forge.ctx.temporal.options;
    const start = { taskQueue: "none", workflowId: "large", args: ["x".repeat(5_000_000)] };
    await new Client({ connection, namespace }).workflow.start("none", start);
    return "taken";
  } catch (error) {
    return inspect(error);
  } finally {
    await connection.close();
  }
}

type Outage = [how: string, away: () => Promise<void>, back: () => Promise<void>];

const TEMPORAL_OUTAGES: Outage[] = [
  [
    "frozen",
    async () => forge.own("temporal").signal("SIGSTOP"),
    async () => forge.own("temporal").signal("SIGCONT"),
  ],
  [
    "gone",
    async () => await forge.own("temporal").kill(),
    async () => await forge.stack.startTemporal(),
  ],
];

describe.each(oneFormOf(TEMPORAL_OUTAGES))("with Temporal %s", (_how, away, back) => {
  test("jobs are accepted, dispatched and reported; they complete when it is back", async () => {
    await away();
    const started = performance.now();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    // If the submission waited for Temporal, it would take five seconds, the time-out of a call.
    expect(performance.now() - started).toBeLessThan(4_000);
    const dispatched = await worker.take();
    expect(dispatched).toMatchObject({ job_id, attempt: 1 });
    expect((await worker.complete(dispatched)).status).toBe(200);
    expect((await forge.user.job(job_id)).status).toBe("running");
    await back();
    expect(await untilEnded(forge.user, job_id, 60_000)).toMatchObject({ status: "completed" });
    await forge.proveInvariants();
  }, 120_000);

  test("a worker that dies meanwhile loses its job, which continues when Temporal is back", async () => {
    const mortal = await forge.worker("mortal");
    // `mortal` must get the first attempt. `worker`, which all tests use, polled recently, so it
    // could still be assigned a job. Registering it again without a boot_id prevents this until its
    // next poll. FORGE_OFFER_S is 0, so the registration itself does not make it available.
    await worker.register();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    expect(await mortal.take()).toMatchObject({ job_id });
    await away();
    await waitFor("the job to be pending again", async () => {
      const job = await forge.user.job(job_id);
      return job.status === "pending";
    });
    await back();
    const dispatched = await worker.take(50);
    expect(dispatched).toMatchObject({ job_id, attempt: 2 });
    await worker.complete(dispatched);
    await untilEnded(forge.user, job_id);
    await forge.proveInvariants();
  }, 120_000);
});

const POSTGRES_OUTAGES: Outage[] = [
  [
    "gone",
    async () => await forge.own("postgres").kill(),
    async () => await forge.stack.startPostgres(),
  ],
  ["frozen", async () => freezePostgres("SIGSTOP"), async () => freezePostgres("SIGCONT")],
];

describe.each(oneFormOf(POSTGRES_OUTAGES))("with Postgres %s", (_how, away, back) => {
  test("every response is a quick 503, and work continues when it is back", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    const serverPid = forge.stack.server?.pid;
    worker.stopHeartbeats();
    await worker.heartbeat();
    const silentMs = performance.now();
    await away();
    const calls = [
      () => forge.user.call("POST", "/api/jobs/audit", AUDIT),
      () => forge.user.call("GET", `/api/jobs/${job_id}`),
      () => worker.complete(dispatched),
    ];
    const slowest = await Promise.all(
      [...calls, ...calls].map(async (call) => {
        const started = performance.now();
        const answer = await call();
        expect(answer).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
        return performance.now() - started;
      }),
    );
    // The time-out of a statement is four seconds.
    expect(Math.max(...slowest)).toBeLessThan(8_000);
    expect((await fetch(`${forge.stack.apiUrl}/readyz`)).status).toBe(503);
    // Wait longer than the heartbeat timeout.
    await sleep(SILENCE_MS + 1_000 - (performance.now() - silentMs));
    await back();
    await waitFor("the server to be ready", async () => {
      return (await fetch(`${forge.stack.apiUrl}/readyz`)).ok;
    });
    // No worker may be marked dead because of the database outage. Wait for only one run of the
    // monitor. On a busy machine, several runs would take longer than the heartbeat time-out, and
    // the worker, which sends no heartbeats here, would be marked dead for that reason.
    await untilMonitorLooks();
    const { status } = await forge.user.get<{ status: string }>(`/api/workers/${worker.id}`);
    expect(status).toBe("busy");
    worker.startHeartbeats();
    expect(await worker.complete(dispatched)).toMatchObject({ status: 200 });
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "completed",
      attempts: 1,
    });
    expect(forge.stack.server?.pid).toBe(serverPid);
    await forge.proveInvariants();
  }, 120_000);
});

test("a connection that breaks between two statements fails only its transaction", async () => {
  const { pool } = forge.ctx;
  const uncaught: unknown[] = [];
  const note = (error: unknown): unknown => uncaught.push(error);
  process.on("uncaughtException", note);
  const broken = transaction(pool, async (db) => {
    const self = await maybeOne<{ pid: number }>(db, "select pg_backend_pid() as pid");
    await all(pool, "select pg_terminate_backend($1)", [self?.pid]);
    await waitFor("its end", async () => {
      const still = await all(pool, "select from pg_stat_activity where pid = $1", [self?.pid]);
      return still.length === 0;
    });
    await maybeOne(db, "select 1");
  });
  await expect(broken).rejects.toThrow();
  expect(await maybeOne(pool, "select 1 as n")).toEqual({ n: 1 });
  process.off("uncaughtException", note);
  expect(uncaught).toEqual([]);
});

/** Signals all Postgres processes: each connection has one, in its own process group. */
function freezePostgres(signal: NodeJS.Signals): void {
  const { pid } = forge.own("postgres");
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  for (const each of [pid, ...children.map(Number)]) process.kill(each, signal);
}
