import { waitFor } from "../../dev/stack/wait";
import { followStep, readClock } from "../../infra/database/clock";
import { execute, maybeOne } from "../../infra/database/pool";
import { transaction } from "../../infra/database/transaction";
import { deploy, stop } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { ServingWorker } from "../support/serving-worker";
import type { TestWorker } from "../support/test-worker";

const GRACE_S = 12;
const DAY_S = 86_400;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_DEADLINE_GRACE_S: String(GRACE_S) }, { own: ["server"] });
});

afterEach(async () => {
  await forge.settle();
});

afterAll(async () => {
  await forge?.stop();
});

async function begin(id: string, more: object, gpu?: Parameters<Forge["worker"]>[1]) {
  const worker = await forge.worker(id, gpu);
  worker.beat();
  const { job_id: jobId } = await forge.user.submit("audit", { ...AUDIT, ...more });
  return { worker, jobId, job: await worker.take() };
}

const overdue = async (jobId: string): Promise<boolean> =>
  (await maybeOne(
    forge.ctx.pool,
    "select from attempts where job_id = $1 and deadline_at < now()",
    [jobId],
  )) !== undefined;

/** A job that nobody brings to its end runs out of time: then deadlines have been looked at. */
async function letOneRunOut(worker: TestWorker): Promise<void> {
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 1 });
  await worker.take();
  expect((await untilEnded(forge.user, job_id)).error_code).toBe("timeout");
}

test("a deadline that passes while the server is away leaves the grace to bring the result", async () => {
  const late = await begin("late", { timeout_s: 2 });
  const never = await begin("never", { timeout_s: 2 });
  await forge.withoutServers(() =>
    waitFor("both deadlines to pass", async () => {
      return (await overdue(late.jobId)) && (await overdue(never.jobId));
    }),
  );
  // The monitor has looked more than once before the result comes.
  for (let beat = 0; beat < 20; beat++) await late.worker.heartbeat({ job_id: late.jobId });
  expect((await late.worker.complete(late.job)).status).toBe(200);
  expect((await untilEnded(forge.user, late.jobId)).status).toBe("completed");
  expect((await untilEnded(forge.user, never.jobId)).error_code).toBe("timeout");
  for (const { worker } of [late, never]) worker.silence();
});

test("a step of the clock that two processes saw is followed once, however late one of them comes", async () => {
  const { worker, jobId, job } = await begin("stepped", { timeout_s: 3_600 });
  const { pool } = forge.ctx;
  await execute(
    pool,
    "update attempts set started_at = started_at - make_interval(days => 2) where job_id = $1",
    [jobId],
  );
  const before = new Date(await readClock(pool));
  const follow = (since: Date): Promise<number> =>
    transaction(pool, (db) => followStep(db, DAY_S, since));
  expect(await follow(before)).toBe(1);
  const after = new Date(await readClock(pool));
  // It stood still over the step.
  expect(await follow(before)).toBe(0);
  // Another step, which it saw as the first did.
  expect(await follow(after)).toBe(1);
  await worker.complete(job);
  await untilEnded(forge.user, jobId);
  worker.silence();
});

test("a clock that is set a day forward ends nobody's job, and bills nobody for the day", async () => {
  await useSettableClock();
  // Meanwhile other processes have noticed that their connections are gone.
  await forge.stack.server?.kill();
  await forge.stack.startServer();
  const { worker, jobId, job } = await begin("patient", { timeout_s: 3_600 }, A100);
  const serving = await forge.worker("serves");
  await serving.register(undefined, { job_types: ["deploy"] });
  const server = new ServingWorker(serving).start();
  const deployment = await deploy(forge.user);
  // The monitor has seen the clock as it was.
  await letOneRunOut(await forge.worker("before"));
  await execute(forge.ctx.pool, "update test_clock.step set by_s = $1", [DAY_S]);
  await letOneRunOut(await forge.worker("other"));
  expect((await forge.user.job(jobId)).status).toBe("running");
  expect((await worker.complete(job)).status).toBe(200);
  expect((await untilEnded(forge.user, jobId)).status).toBe("completed");
  const attempt = await maybeOne<{ hours: number }>(
    forge.ctx.pool,
    "select gpu_hours_measured as hours from attempts where job_id = $1",
    [jobId],
  );
  expect(attempt?.hours).toBeGreaterThan(0);
  expect(attempt?.hours).toBeLessThan(0.1);
  const HOUR_IN_DAYS = 1 / 24;
  const record = `/api/billing/records/${deployment.job_id}`;
  const daysOf = async (): Promise<number> =>
    (await forge.user.get<{ metrics: { deployment_lifetime_days: number } }>(record)).metrics
      .deployment_lifetime_days;
  expect(await daysOf()).toBeLessThan(HOUR_IN_DAYS);
  await stop(forge.user, deployment.deployment_id);
  expect(await daysOf()).toBeLessThan(HOUR_IN_DAYS);
  await server.die();
  worker.silence();
});

const A100 = { name: "NVIDIA A100 80GB", memory_gb: 80 };

/**
 * Another `now()`, found before Postgres's own by connections made from here on: what the server's statements
 * ask for. One machine's clock can't be set for a test.
 */
async function useSettableClock(): Promise<void> {
  for (const statement of [
    "create schema test_clock",
    "create table test_clock.step (by_s float8 not null)",
    "insert into test_clock.step values (0)",
    `create function test_clock.now() returns timestamptz language sql stable as
       $$ select pg_catalog.now() + make_interval(secs => by_s) from test_clock.step $$`,
  ]) {
    await execute(forge.ctx.pool, statement);
  }
  const database = await maybeOne<{ name: string }>(
    forge.ctx.pool,
    "select current_database() as name",
  );
  await execute(
    forge.ctx.pool,
    `alter database "${database?.name}" set search_path = test_clock, pg_catalog, public`,
  );
  // Of every process: two clocks in one would be a step at each change of the connection.
  await execute(
    forge.ctx.pool,
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()`,
  );
}
