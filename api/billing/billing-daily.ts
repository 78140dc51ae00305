import { Decimal } from "decimal.js";
import { z } from "zod";
import { splitByDay } from "../../core/billing/daily";
import { accruedIn, monthBounds } from "../../core/billing/month";
import { portionsOf } from "../../core/billing/record";
import { numbers } from "../../core/billing/record-schema";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import { type Route, route } from "../../platform/http/route";
import { readClock } from "../../platform/postgres/clock";
import type { Queryable } from "../../platform/postgres/pool";
import { readSnapshot } from "../../platform/postgres/transaction";
import { listDeploymentMonths, readDayTotals } from "../../services/billing/billing-days";
import type { Context } from "../../services/context";
import { requireTenant, tenantQuery } from "../accounts/tenant-filter";
import { periodQuery } from "./period";

const DAY_MS = 86_400_000;

const dailySchema = z
  .object({
    user_id: z.string(),
    period: z.string().describe("YYYY-MM, UTC"),
    total_cost_usd: z.number().describe("the same as in the month's summary"),
    days: z
      .array(
        z.object({
          day: z.string().describe("YYYY-MM-DD, UTC"),
          by_job_type: numbers,
          total_cost_usd: z.number(),
        }),
      )
      .describe("each day of the month up to today, and any other day with costs"),
  })
  .meta({ id: "DailyBilling" });

export function billingDailyRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/billing/daily"],
    scope: "user",
    operationId: "getDailyBilling",
    tag: "Billing",
    summary: "Read a month's costs by day and job type",
    description:
      "A job counts on the day that it ended, a deployment on each day of its life. The days add up to " +
      "`by_job_type` and `total_cost_usd` of the month's summary; neither includes storage.",
    query: z.strictObject({ ...periodQuery, ...tenantQuery }),
    responses: { 200: { description: "the days", schema: dailySchema } },
    errorCodes: { 404: ["user_not_found"] },
    async handle({ principal, query }) {
      const userId = await requireTenant(ctx, principal, query.user_id);
      // Read one snapshot, so that the current day, the jobs' costs and the deployments' costs are
      // all of the same time.
      return await readSnapshot(ctx.pool, (db) => readDays(db, userId, query.period));
    },
  });
}

async function readDays(
  db: Queryable,
  userId: string,
  period: string | undefined,
): Promise<z.infer<typeof dailySchema>> {
  const bounds = monthBounds(period, await readClock(db));
  const first = `${bounds.period}-01`;
  const sums = new Map<string, Map<string, Decimal>>();
  const add = (day: string, type: string, usd: Decimal): void => {
    const ofDay = sums.get(day) ?? new Map<string, Decimal>();
    sums.set(day, ofDay.set(type, usd.plus(ofDay.get(type) ?? 0)));
  };
  for (const { day, job_type: type, cost_usd: usd } of await readDayTotals(db, userId, first)) {
    add(day, type, new Decimal(usd));
  }
  for (const row of await listDeploymentMonths(db, userId, first)) {
    const portions = portionsOf(row);
    const { rate_card: card, lived_by_month: lived, written } = row;
    const line = written.find(({ month }) => month === first)?.costUsd ?? 0;
    const isAccruing = row.state === "accruing";
    const share = isAccruing
      ? accruedIn({ portions, card, lived, written }, first).plus(line)
      : line;
    const shares = splitByDay({
      month: first,
      portions,
      card,
      share: new Decimal(share),
      daysBefore: row.days_before,
      lived: row.lived,
    });
    for (const { day, usd } of shares) add(day, DEPLOYMENT_TYPE, usd);
  }
  // `daysOf` returns no days after today. Include later days that have costs, too: billing lines
  // may have been written while the database's clock was ahead.
  const names = [...new Set([...daysOf(bounds), ...sums.keys()])].sort();
  const days = names.map((day) => ({ day, types: sums.get(day) ?? new Map() }));
  const totals = days.map(({ types }) => Decimal.sum(0, ...types.values()));
  return {
    user_id: userId,
    period: bounds.period,
    total_cost_usd: Decimal.sum(0, ...totals).toNumber(),
    days: days.map(({ day, types }, at) => ({
      day,
      by_job_type: Object.fromEntries(
        [...types].map(([type, usd]: [string, Decimal]) => [type, usd.toNumber()]),
      ),
      total_cost_usd: totals[at]?.toNumber() ?? 0,
    })),
  };
}

function daysOf({ start, end, now }: ReturnType<typeof monthBounds>): string[] {
  const count = Math.ceil((Math.min(end.getTime(), now.getTime() + 1) - start.getTime()) / DAY_MS);
  return Array.from({ length: Math.max(0, count) }, (_, at) =>
    new Date(start.getTime() + at * DAY_MS).toISOString().slice(0, 10),
  );
}
