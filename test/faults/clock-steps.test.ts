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

/** The database's clock is set forward and back while jobs and deployments run. */
const DAY_S = 86_400;
/** Of a deployment's bill, in seconds: how long the test takes to see that it serves. */
const TOLERANCE_S = 1.5;
/** Steps that add up to less are not recorded yet. */
const UNSEEN_S = 5;

/** What both directions are alike for is tried in one; in the slow suite in both. */
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
  await looked();
});

afterAll(async () => {
  await server?.die();
  await forge?.stop();
});

/** Tried again where a server that records a step has locked the same workers in another order. */
const forgetOffers = (): Promise<void> =>
  transaction(forge.ctx.pool, (db) =>
    execute(db, "update workers set available_until = null").then(() => undefined),
  );

async function begin(gpu = { name: "cpu", memory_gb: 0 }) {
  // Workers of before don't ask any more.
  await forgetOffers();
  const worker = await forge.worker(`w${workers++}`, gpu);
  worker.beat();
  const { job_id: jobId } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 3_600 });
  return { worker, jobId, job: await worker.take() };
}

/** A job has run out of time since: so the fleet monitor has seen the clock as it is, and looked at deadlines. */
async function looked(): Promise<void> {
  await forgetOffers();
  const worker = await forge.worker(`w${workers++}`);
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 1 });
  await worker.take();
  expect((await untilEnded(forge.user, job_id)).error_code).toBe("timeout");
}

async function setAndLook(byS: number): Promise<void> {
  await setClock(byS);
  await looked();
}

const billedS = async ({ job_id: jobId }: Deployment): Promise<number> =>
  ((await readRecord(forge.user, jobId)).metrics.deployment_lifetime_days ?? 0) * DAY_S;

/** For how long a deployment lived while this went on, and for how long it is billed. */
async function lifetime(meanwhile: () => Promise<void>): Promise<{ s: number; billed: number }> {
  const one = await deploy(forge.user);
  const since = performance.now();
  await meanwhile();
  await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
  // Its server may take seconds more to end, which nobody pays.
  const s = (performance.now() - since) / 1000;
  await until(forge.user, one.deployment_id, "stopped", ({ status }) => status === "stopped");
  return { s, billed: await billedS(one) };
}

const expectTrue = ({ s, billed }: { s: number; billed: number }): void => {
  expect(Math.abs(s - billed)).toBeLessThan(TOLERANCE_S);
};

describe("a deployment is billed for the time that it lived though the clock", () => {
  afterEach(async () => {
    await forge.settle();
  });

  test("was set back, and right again", async () => {
    const back = async (): Promise<void> => {
      await looked();
      await setAndLook(-25);
      await setAndLook(0);
    };
    expectTrue(await lifetime(back));
  }, 120_000);

  slowTest(
    "was set forward and back before, and has passed that time since",
    async () => {
      await setAndLook(10);
      await setAndLook(0);
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
        for (let n = 1; n <= 8; n++) await setAndLook(4 * n);
      };
      const { s, billed } = await lifetime(creeping);
      expect(Math.abs(s - billed)).toBeLessThan(UNSEEN_S + TOLERANCE_S);
    },
    120_000,
  );

  test("was set a day forward", async () => {
    expectTrue(await lifetime(() => setAndLook(DAY_S)));
  });

  test.each(STEPS)("was set by %i s right before its stop", async (byS) => {
    const stepping = async (): Promise<void> => {
      await looked();
      await setClock(byS);
    };
    expectTrue(await lifetime(stepping));
  });

  test.each(STEPS)("was set by %i s right before it began", async (byS) => {
    await setClock(byS);
    expectTrue(await lifetime(looked));
  });
});

const ENDS: Record<string, (worker: TestWorker, job: DispatchedJob) => Promise<unknown>> = {
  result: (worker, job) => worker.complete(job),
  restart: (worker) => worker.register(A100, { boot_id: "another" }),
  decommission: ({ id }) => forge.user.call("DELETE", `/api/workers/${id}`),
};
/** One way of ending is as good as another for the clock. */
const ENDS_TRIED = oneFormOf(Object.keys(ENDS));
const A100 = { name: "A100", memory_gb: 80 };

test.each(ENDS_TRIED.flatMap((what) => STEPS.map((byS) => [byS, what] as const)))(
  "an attempt's GPU time is as long as it took though the clock was set by %i s right before its %s",
  async (byS, what) => {
    const { worker, job, jobId } = await begin(A100);
    await execute(
      forge.ctx.pool,
      `update attempts set queued_at = queued_at - $2::interval, assigned_at = assigned_at - $2::interval,
            started_at = started_at - $2::interval where job_id = $1`,
      [jobId, "1 hour"],
    );
    await looked();
    await setClock(byS);
    worker.silence();
    await ENDS[what]?.(worker, job);
    const measured = `select gpu_hours_measured::float8 as hours from attempts
    where job_id = $1 and attempt = 1 and state = 'ended'`;
    const row = await maybeOne<{ hours: number }>(forge.ctx.pool, measured, [jobId]);
    await forge.user.call("POST", `/api/jobs/${jobId}/cancel`, {});
    expect(row?.hours).toBeCloseTo(1, 1);
    await untilEnded(forge.user, jobId);
  },
);

test("what began right before a step forward moves with it, though looks tell its length a little wrong", async () => {
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
  worker.silence();
});

slowTest(
  "a clock that is set forward, back and forward again ends nobody's job",
  async () => {
    const jobs = [await begin()];
    for (const byS of [DAY_S, 0, DAY_S, -DAY_S, 2 * DAY_S]) {
      await setAndLook(byS);
      for (const { jobId } of jobs) expect((await forge.user.job(jobId)).status).toBe("running");
      jobs.push(await begin());
    }
    for (const { worker, jobId, job } of jobs) {
      expect((await worker.complete(job)).status).toBe(200);
      expect((await untilEnded(forge.user, jobId)).status).toBe("completed");
      worker.silence();
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
    await forge.settle();
  },
  180_000,
);

slowTest(
  "a model's server that is missing, or serves badly, keeps its grace when the clock is set forward",
  async () => {
    const [missing, sick] = [await deploy(forge.user), await deploy(forge.user)];
    server.hidden.add(missing.deployment_id);
    server.unhealthy.add(sick.deployment_id);
    const since = `select extract(epoch from now() - coalesce(missing_since, unhealthy_since))::float8 as s
    from placements where state = 'serving' and coalesce(missing_since, unhealthy_since) is not null`;
    const noticed = () => all<{ s: number }>(forge.ctx.pool, since);
    await waitFor("both to be noticed", async () => (await noticed()).length === 2);
    await setAndLook(DAY_S);
    const ages = await noticed();
    expect(ages).toHaveLength(2);
    for (const { s } of ages) expect(Math.abs(s)).toBeLessThan(60);
    server.hidden.clear();
    server.unhealthy.clear();
    for (const one of [missing, sick]) {
      const { placements } = await stop(forge.user, one.deployment_id);
      expect(placements).toMatchObject([{ placement: 1, outcome: "stopped" }]);
    }
    await forge.settle();
  },
  120_000,
);

/** Of some months before and after this one. */
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

test("months add up to a bill, days to months, and a budget counts all, though the clock closed some early", async () => {
  const one = await deploy(forge.user);
  const old = await deploy(forge.user);
  // As if it had begun in the month before the last one, and by the wrong clock in the last one.
  const earlier = "update deployments set active_at = active_at - interval '75 days'";
  await execute(forge.ctx.pool, `${earlier} where deployment_id = $1`, [old.deployment_id]);
  await looked();
  await setAndLook(40 * DAY_S);
  expect(await closeMonths(forge.ctx)).toBeGreaterThan(0);
  await setAndLook(0);
  await looked();
  await expectDaysToAddUp();
  // What goes on is borne by a month that has not begun, and counts in the budget of this one.
  const later = await Promise.all(periods(1, 4).map((period) => readSummary(forge.user, period)));
  const laterUsd = later.reduce((sum, { accruing_usd: usd }) => sum + usd, 0);
  expect(laterUsd).toBeGreaterThan(0);
  await setCap(forge.user, 100);
  const { total_cost_usd: nowUsd } = await readSummary(forge.user);
  expect((await readBudget(forge.user)).spent_usd).toBeCloseTo(nowUsd + laterUsd, 3);
  for (const each of [one, old]) await stop(forge.user, each.deployment_id);
  expect(await billedS(one)).toBeLessThan(60);
  expect(Math.abs((await billedS(old)) - 75 * DAY_S)).toBeLessThan(60);
  expect((await recomputeCheck(forge)).stdout).not.toContain("its months bear");
  await expectDaysToAddUp();
}, 120_000);
