import { Decimal } from "decimal.js";
import fc from "fast-check";
import { DEFAULT_RATE_CARD } from "../../core/billing/rate-card";
import { NO_USAGE } from "../../core/billing/usage";
import { all, execute } from "../../platform/postgres/pool";
import { closeMonths } from "../../services/billing/close-months";
import { readSummary, recomputeCheck } from "../support/billing";
import { deploy, servingWorker } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { seedJobs } from "../support/seeded-jobs";
import type { ServingWorker } from "../support/serving-worker";
import { createTenant } from "../support/tenants";

let forge: Forge;
let serving: ServingWorker;

beforeAll(async () => {
  const env = { FORGE_RATE_LIMIT_PER_MINUTE: "1000000", TZ: "America/New_York" };
  forge = await startForge(env, { own: ["server"] });
  serving = await servingWorker(forge, "serving");
});

afterAll(async () => {
  await serving?.die();
  await forge?.stop();
});

interface Daily {
  period: string;
  total_cost_usd: number;
  days: { day: string; by_job_type: Record<string, number>; total_cost_usd: number }[];
}

const readDaily = (period?: string, api = forge.user): Promise<Daily> =>
  api.get<Daily>(`/api/billing/daily${period ? `?period=${period}` : ""}`);

const sum = (amounts: number[]): number => Decimal.sum(0, ...amounts).toNumber();

function byType({ days }: Daily): Record<string, number> {
  const types = new Set(days.flatMap(({ by_job_type: types }) => Object.keys(types)));
  return Object.fromEntries(
    [...types].map((type) => [type, sum(days.map((day) => day.by_job_type[type] ?? 0))]),
  );
}

interface Bill {
  job_id: string;
  job_type: string;
  at: string;
  usd: string;
}

/** Inserts records and lines. Triggers update the totals, as for a real bill. */
async function seedBills(userId: string, bills: Bill[]): Promise<void> {
  await seedJobs(
    forge.ctx.pool,
    bills.map(({ job_id, job_type, at }) => {
      return { job_id, job_type, user_id: userId, status: "completed", completed_at: at };
    }),
  );
  await execute(
    forge.ctx.pool,
    `with bills as (
       select * from json_to_recordset($1) b (job_id text, job_type text, at timestamptz, usd numeric)),
     attempted as (
       insert into attempts (job_id, attempt, state, shape, priority, ended_at, outcome)
       select job_id, 1, 'ended', '', 0, at, 'completed' from bills),
     record as (
       insert into billing_records (job_id, user_id, job_type, attempt, metrics, unit_costs, cost_breakdown,
                                    total_cost_usd, rate_card, gpu_tokens, formula, created_at)
       select job_id, $2, job_type, 1, $3, '{}', '{}', usd, $4, '{}', '', at from bills
       returning *)
     insert into billing_lines (line_id, user_id, month, job_id, cost_usd)
     select job_id, user_id, date_trunc('month', created_at at time zone 'UTC'), job_id, total_cost_usd
     from record`,
    [JSON.stringify(bills), userId, { ...NO_USAGE, stored_gb: 0 }, DEFAULT_RATE_CARD],
  );
}

const bill = fc.record({
  job_type: fc.constantFrom("audit", "train", "generate"),
  // The constant times are at the edges of days and months: a wrong time zone would move these
  // bills to another day.
  at: fc.oneof(
    fc.date({ min: new Date("2026-01-30"), max: new Date("2026-03-02"), noInvalidDate: true }),
    fc.constantFrom(
      ...["2026-01-31T23:59:59.999Z", "2026-02-01T00:00:00.000Z", "2026-02-28T23:59:59.999Z"].map(
        (text) => new Date(text),
      ),
    ),
  ),
  micros: fc.integer({ min: 0, max: 2_000_000_000 }),
});

test("days are the sums of their records, and add up to the summary", async () => {
  let tenants = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(bill, { maxLength: 40 }), async (given) => {
      const userId = `daily-${++tenants}`;
      const { user } = await createTenant(forge, userId);
      const bills = given.map(({ job_type, at, micros }, n) => ({
        job_id: `job_${userId}_${n}`,
        job_type,
        at: at.toISOString(),
        usd: new Decimal(micros).div(1_000_000).toFixed(),
      }));
      await seedBills(userId, bills);
      for (const period of ["2026-01", "2026-02", "2026-03"]) {
        const [daily, summary] = [await readDaily(period, user), await readSummary(user, period)];
        for (const { day, by_job_type: types, total_cost_usd: total } of daily.days) {
          const ofDay = bills.filter(({ at }) => at.startsWith(day));
          for (const type of ["audit", "train", "generate"]) {
            const ofType = ofDay.filter(({ job_type }) => job_type === type);
            expect(types[type] ?? 0).toBe(sum(ofType.map(({ usd }) => Number(usd))));
          }
          expect(total).toBe(sum(ofDay.map(({ usd }) => Number(usd))));
        }
        expect(byType(daily)).toEqual(summary.by_job_type);
        expect(daily.total_cost_usd).toBe(summary.total_cost_usd);
      }
    }),
    { numRuns: 15 },
  );
});

test("a deployment is spread over the days of its lifetime, while it is active and after", async () => {
  const one = await deploy(forge.user);
  const other = await deploy(forge.user);
  const move = async (id: string, at: string): Promise<void> => {
    const sql = "update deployments set active_at = $2 where deployment_id = $1";
    await execute(forge.ctx.pool, sql, [id, at]);
  };
  await move(one.deployment_id, "2026-02-10T12:00:00Z");
  await move(other.deployment_id, "2026-03-31T18:30:00Z");
  const pastMonths = ["2026-02", "2026-03", "2026-04", "2026-05"];
  const proveSums = async (): Promise<void> => {
    for (const period of pastMonths) {
      const [daily, summary] = [await readDaily(period), await readSummary(forge.user, period)];
      expect(byType(daily)).toEqual(summary.by_job_type);
      expect(daily.total_cost_usd).toBe(summary.total_cost_usd);
    }
    // This month's cost grows between the two calls, so the sums may differ slightly.
    const [daily, summary] = [await readDaily(), await readSummary(forge.user)];
    expect(daily.total_cost_usd).toBeCloseTo(summary.total_cost_usd, 4);
  };
  await proveSums();
  const february = await readDaily("2026-02");
  expect(february.days).toHaveLength(28);
  expect(february.days.slice(8, 11).map(({ by_job_type: types }) => types)).toEqual([
    {},
    { deploy: 0.033333 },
    { deploy: 0.066667 },
  ]);
  while ((await closeMonths(forge.ctx)) > 0);
  await proveSums();
  await forge.user.post(`/api/deployments/${one.deployment_id}/stop`, {});
  await forge.user.post(`/api/deployments/${other.deployment_id}/stop`, {});
  await proveSums();
  expect((await readDaily("2026-02")).days).toEqual(february.days);
});

test("the current month ends today, and a future month has no days", async () => {
  const now = await readDaily();
  expect(now.days.at(-1)?.day).toBe(new Date().toISOString().slice(0, 10));
  expect(await readDaily("2999-01")).toMatchObject({ total_cost_usd: 0, days: [] });
});

test("a tenant sees only its own days; an admin names the tenant", async () => {
  const { user } = await createTenant(forge, "no-bills");
  expect(await readDaily("2026-02", user)).toMatchObject({ total_cost_usd: 0 });
  const path = "/api/billing/daily?period=2026-02&user_id=daily-1";
  expect(await forge.admin.get(path)).toMatchObject({ user_id: "daily-1" });
  expect((await user.call("GET", path)).status).toBe(403);
  const unknown = await forge.admin.call("GET", "/api/billing/daily?user_id=nobody");
  expect(unknown).toMatchObject({ status: 404, body: { error: { code: "user_not_found" } } });
});

test("the check finds a wrong day, and recomputing repairs it", async () => {
  // Returns only the wrong daily totals. The check also reports the seeded records, because their
  // cost does not follow from their metrics.
  const ofDays = async (): Promise<string[]> =>
    (await recomputeCheck(forge)).stdout.split("\n").filter((line) => line.startsWith("day "));
  expect(await ofDays()).toEqual([]);
  const [spoilt] = await all<{ day: string }>(
    forge.ctx.pool,
    `update billing_days set cost_usd = cost_usd + 1
     where (user_id, day, job_type) = (select user_id, day, job_type from billing_days limit 1)
     returning to_char(day, 'YYYY-MM-DD') as day`,
  );
  expect(await ofDays()).toEqual([expect.stringContaining(`day ${spoilt?.day} of daily-`)]);
  await recomputeCheck(forge, "--rebuild-totals");
  expect(await ofDays()).toEqual([]);
});
