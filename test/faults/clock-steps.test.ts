/** The database's clock is set forward and back while jobs and deployments run. */

import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { closeMonths } from "../../services/billing/close-months";
import { recordStep } from "../../services/clock/record-step";
import { readRecord, readSummary, recomputeCheck } from "../support/billing";
import { readBudget, setCap } from "../support/budgets";
import { type Deployment, deploy, stop, until } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { ServingWorker } from "../support/serving-worker";
import { useSettableClock } from "../support/settable-clock";
import { oneFormOf, slowTest } from "../support/slow";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

const DAY_S = 86_400;
/**
 * Tolerance for a billed lifetime, in seconds. A process measures a step of the clock only at its
 * next check of the clock, so the recorded size of the step is inexact.
 */
const TOLERANCE_S = 1.5;
/** Small steps of the clock are not recorded until they add up to more than this many seconds. */
const UNSEEN_S = 5;

/** Steps of the clock in both directions, in seconds. `npm test` uses only the first one. */
const STEPS = oneFormOf([DAY_S, -DAY_S]);

let forge: Forge;
let server: ServingWorker;
let setClock: (byS: number) => Promise<void>;
let workers = 0;

beforeAll(async () => {
  const graces = { FORGE_DEPLOYMENT_MISSING_S: "600", FORGE_DEPLOYMENT_UNHEALTHY_S: "600" };
  forge = await startForge(graces, { own: ["server"] });
  setClock = await useSettableClock(forge);
  const serving = await forge.worker("serves");
  await serving.register(undefined, { job_types: ["deploy"] });
  server = new ServingWorker(serving).start();
});

afterEach(async () => {
  await setClock(0);
  await untilMonitorHasRun();
});

afterAll(async () => {
  await server?.die();
  await forge?.stop();
});

/**
 * Makes all workers unavailable. A server that records a clock step locks the same rows, maybe in
 * another order. If this causes a deadlock, `transaction` tries again.
 */
const forgetOffers = (): Promise<void> =>
  transaction(forge.ctx.pool, (db) =>
    execute(db, "update workers set available_until = null").then(() => undefined),
  );

async function begin(gpu = { name: "cpu", memory_gb: 0 }) {
  // The workers of earlier tests no longer poll, so they must not be assigned this job.
  await forgetOffers();
  const worker = await forge.worker(`w${workers++}`, gpu);
  worker.startHeartbeats();
  const { job_id: jobId } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 3_600 });
  return { worker, jobId, job: await worker.take() };
}

/**
 * Runs a job past its deadline. This proves that the fleet monitor has seen the current clock and
 * checked deadlines.
 */
async function untilMonitorHasRun(): Promise<void> {
  await forgetOffers();
  const worker = await forge.worker(`w${workers++}`);
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 1 });
  await worker.take();
  expect((await untilEnded(forge.user, job_id)).error_code).toBe("timeout");
}

async function setAndWait(byS: number): Promise<void> {
  await setClock(byS);
  await untilMonitorHasRun();
}

const billedS = async ({ job_id: jobId }: Deployment): Promise<number> =>
  ((await readRecord(forge.user, jobId)).metrics.deployment_lifetime_days ?? 0) * DAY_S;

/** A deployment's lifetime in seconds: the real one is between `leastS` and `mostS`. */
interface Lifetime {
  leastS: number;
  mostS: number;
  billed: number;
}

/**
 * Starts a deployment, runs `meanwhile`, and stops the deployment. @returns its real and its billed
 * lifetime.
 */
async function lifetime(meanwhile: () => Promise<void>): Promise<Lifetime> {
  const submitted = performance.now();
  const one = await deploy(forge.user);
  const served = performance.now();
  await meanwhile();
  const leastS = (performance.now() - served) / 1000;
  await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
  // The bill ends with this request, even if the deployment's server takes some seconds to stop.
  const mostS = (performance.now() - submitted) / 1000;
  await until(forge.user, one.deployment_id, "stopped", ({ status }) => status === "stopped");
  return { leastS, mostS, billed: await billedS(one) };
}

const expectTrue = ({ leastS, mostS, billed }: Lifetime, toleranceS = TOLERANCE_S): void => {
  expect(billed).toBeGreaterThan(leastS - toleranceS);
  expect(billed).toBeLessThan(mostS + toleranceS);
};

describe("a deployment is billed for its real lifetime although the clock", () => {
  afterEach(async () => {
    await forge.endTest();
  });

  slowTest(
    "was set back, and right again",
    async () => {
      const back = async (): Promise<void> => {
        await untilMonitorHasRun();
        await setAndWait(-25);
        await setAndWait(0);
      };
      expectTrue(await lifetime(back));
    },
    120_000,
  );

  slowTest(
    "was set forward and back before, and has passed that time again",
    async () => {
      await setAndWait(10);
      await setAndWait(0);
      const passing = async (): Promise<void> => {
        await waitFor("the clock to pass the step", async () => {
          const ahead =
            "select from clock_steps where seen_at between now() and now() + interval '1 minute'";
          return (await maybeOne(forge.ctx.pool, ahead)) === undefined;
        });
      };
      expectTrue(await lifetime(passing));
    },
    120_000,
  );

  slowTest(
    "was set eight times by 4 s",
    async () => {
      const creeping = async (): Promise<void> => {
        for (let n = 1; n <= 8; n++) await setAndWait(4 * n);
      };
      expectTrue(await lifetime(creeping), UNSEEN_S + TOLERANCE_S);
    },
    120_000,
  );

  slowTest("was set a day forward", async () => {
    expectTrue(await lifetime(() => setAndWait(DAY_S)));
  });

  test.each(STEPS)("was set by %i s right before its stop", async (byS) => {
    const stepping = async (): Promise<void> => {
      await untilMonitorHasRun();
      await setClock(byS);
    };
    expectTrue(await lifetime(stepping));
  });

  test.each(STEPS)("was set by %i s right before it began", async (byS) => {
    await setClock(byS);
    expectTrue(await lifetime(untilMonitorHasRun));
  });
});

const ENDS: Record<string, (worker: TestWorker, job: DispatchedJob) => Promise<unknown>> = {
  result: (worker, job) => worker.complete(job),
  restart: (worker) => worker.register(A100, { boot_id: "another" }),
  decommission: ({ id }) => forge.user.call("DELETE", `/api/workers/${id}`),
};
/** `npm test` tries only one way to end an attempt, because the clock affects all of them alike. */
const ENDS_TRIED = oneFormOf(Object.keys(ENDS));
const A100 = { name: "A100", memory_gb: 80 };

test.each(ENDS_TRIED.flatMap((what) => STEPS.map((byS) => [byS, what] as const)))(
  "an attempt's GPU time is its real duration although the clock was set by %i s right before its %s",
  async (byS, what) => {
    const { worker, job, jobId } = await begin(A100);
    await execute(
      forge.ctx.pool,
      `update attempts set queued_at = queued_at - $2::interval, assigned_at = assigned_at - $2::interval,
            started_at = started_at - $2::interval where job_id = $1`,
      [jobId, "1 hour"],
    );
    await untilMonitorHasRun();
    await setClock(byS);
    worker.stopHeartbeats();
    await ENDS[what]?.(worker, job);
    const measured = `select gpu_hours_measured::float8 as hours from attempts
    where job_id = $1 and attempt = 1 and state = 'ended'`;
    const row = await maybeOne<{ hours: number }>(forge.ctx.pool, measured, [jobId]);
    await forge.user.call("POST", `/api/jobs/${jobId}/cancel`, {});
    expect(row?.hours).toBeCloseTo(1, 1);
    await untilEnded(forge.user, jobId);
  },
);

test("an attempt that began right before a step forward moves with it, although the step is measured inexactly", async () => {
  const { worker, job, jobId } = await begin();
  const { pool } = forge.ctx;
  await setClock(DAY_S);
  await recordStep(pool, DAY_S + 0.5, 2);
  const moved = await maybeOne<{ s: number; job_s: number }>(
    pool,
    `select extract(epoch from now() - a.started_at)::float8 as s,
            extract(epoch from now() - j.started_at)::float8 as job_s
     from attempts a join jobs j using (job_id) where job_id = $1`,
    [jobId],
  );
  expect(moved?.s).toBeLessThan(60);
  expect(moved?.job_s).toBeLessThan(60);
  expect((await worker.complete(job)).status).toBe(200);
  await untilEnded(forge.user, jobId);
  worker.stopHeartbeats();
});

slowTest(
  "a clock that is set forward, back and forward again ends no job",
  async () => {
    const jobs = [await begin()];
    for (const byS of [DAY_S, 0, DAY_S, -DAY_S, 2 * DAY_S]) {
      await setAndWait(byS);
      for (const { jobId } of jobs) expect((await forge.user.job(jobId)).status).toBe("running");
      jobs.push(await begin());
    }
    for (const { worker, jobId, job } of jobs) {
      expect((await worker.complete(job)).status).toBe(200);
      expect((await untilEnded(forge.user, jobId)).status).toBe("completed");
      worker.stopHeartbeats();
    }
    const attempts = await all<{ hours: number; job_hours: number }>(
      forge.ctx.pool,
      `select extract(epoch from a.ended_at - a.started_at)::float8 / 3600 as hours,
            extract(epoch from j.completed_at - j.started_at)::float8 / 3600 as job_hours
     from attempts a join jobs j using (job_id) where job_id = any($1)`,
      [jobs.map(({ jobId }) => jobId)],
    );
    expect(attempts).toHaveLength(jobs.length);
    for (const { hours, job_hours: jobHours } of attempts) {
      expect(hours).toBeLessThan(0.05);
      expect(Math.abs(jobHours - hours)).toBeLessThan(0.05);
    }
    await forge.endTest();
  },
  180_000,
);

slowTest(
  "a missing or unhealthy model server keeps its grace period when the clock is set forward",
  async () => {
    const [missing, sick] = [await deploy(forge.user), await deploy(forge.user)];
    server.hidden.add(missing.deployment_id);
    server.unhealthy.add(sick.deployment_id);
    const since = `select extract(epoch from now() - coalesce(missing_since, unhealthy_since))::float8 as s
    from placements where state = 'serving' and coalesce(missing_since, unhealthy_since) is not null`;
    const noticed = () => all<{ s: number }>(forge.ctx.pool, since);
    await waitFor("both to be noticed", async () => (await noticed()).length === 2);
    await setAndWait(DAY_S);
    const ages = await noticed();
    expect(ages).toHaveLength(2);
    for (const { s } of ages) expect(Math.abs(s)).toBeLessThan(60);
    server.hidden.clear();
    server.unhealthy.clear();
    for (const one of [missing, sick]) {
      const { placements } = await stop(forge.user, one.deployment_id);
      expect(placements).toMatchObject([{ placement: 1, outcome: "stopped" }]);
    }
    await forge.endTest();
  },
  120_000,
);

/** Returns months as YYYY-MM. `from` and `to` are relative to the current month (0). */
const periods = (from: number, to: number): string[] => {
  const now = new Date();
  return Array.from({ length: to - from + 1 }, (_, n) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + from + n))
      .toISOString()
      .slice(0, 7),
  );
};

async function expectDaysToAddUp(): Promise<void> {
  for (const period of periods(-4, 4)) {
    const path = `/api/billing/daily?period=${period}`;
    const daily = await forge.user.get<{ total_cost_usd: number }>(path);
    const { total_cost_usd: total } = await readSummary(forge.user, period);
    expect([period, daily.total_cost_usd]).toEqual([period, expect.closeTo(total, 4)]);
  }
}

test("months add up to a bill, days to months, and a budget counts all, although the clock closed some early", async () => {
  const one = await deploy(forge.user);
  const old = await deploy(forge.user);
  // Backdate `old` by 75 days, so that it has costs in past months. When the clock is set 40 days
  // ahead below, the current month is over, too.
  const earlier = "update deployments set active_at = active_at - interval '75 days'";
  await execute(forge.ctx.pool, `${earlier} where deployment_id = $1`, [old.deployment_id]);
  await untilMonitorHasRun();
  await setAndWait(40 * DAY_S);
  expect(await closeMonths(forge.ctx)).toBeGreaterThan(0);
  await setAndWait(0);
  await untilMonitorHasRun();
  await expectDaysToAddUp();
  // Because the clock was ahead, some costs are now in months that have not begun. They count
  // towards this month's budget.
  const later = await Promise.all(periods(1, 4).map((period) => readSummary(forge.user, period)));
  const laterUsd = later.reduce((sum, { accruing_usd: usd }) => sum + usd, 0);
  expect(laterUsd).toBeGreaterThan(0);
  await setCap(forge.user, 100);
  const { total_cost_usd: nowUsd } = await readSummary(forge.user);
  expect((await readBudget(forge.user)).spent_usd).toBeCloseTo(nowUsd + laterUsd, 3);
  for (const each of [one, old]) await stop(forge.user, each.deployment_id);
  expect(await billedS(one)).toBeLessThan(60);
  expect(Math.abs((await billedS(old)) - 75 * DAY_S)).toBeLessThan(60);
  expect((await recomputeCheck(forge)).stdout).not.toMatch(/^record .*: its lines add up/m);
  await expectDaysToAddUp();
}, 120_000);
