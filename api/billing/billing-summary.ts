import type { Decimal } from "decimal.js";
import { z } from "zod";
import { monthBounds } from "../../core/billing/month";
import { numbers } from "../../core/billing/record-schema";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import { JOB_TYPES } from "../../core/jobs/job-types";
import { type Route, route } from "../../platform/http/route";
import { readClock } from "../../platform/postgres/clock";
import type { Queryable } from "../../platform/postgres/pool";
import { readSnapshot } from "../../platform/postgres/transaction";
import { readMostExpensive } from "../../services/billing/billing-months";
import { findRateCard } from "../../services/billing/rate-cards";
import { type Month, readMonth } from "../../services/billing/read-month";
import { findBudgetState } from "../../services/billing/require-budget";
import type { Context } from "../../services/context";
import { requireTenant, tenantQuery } from "../accounts/tenant-filter";
import { periodQuery } from "./period";
import { budgetSchema, presentBudget } from "./present-budget";

/** How many tags and pipelines are shown, the most expensive first. */
const MOST_SHOWN = 100;

type NamedCost = readonly [name: string, usd: Decimal];

const usd = z.number();

const lineSchema = z.object({
  kind: z
    .enum(["jobs", "accruing", "storage"])
    .describe(
      "`accruing`: the cost of live deployments so far; `storage`: only if the card has a storage price",
    ),
  job_type: z.enum(JOB_TYPES).nullable(),
  description: z.string(),
  amount_usd: z.number(),
});

const summarySchema = z
  .object({
    user_id: z.string(),
    period: z.string().describe("YYYY-MM, UTC"),
    total_cost_usd: usd.describe(
      "the month's costs without storage. A deployment counts with its cost in this month only; a live one with its cost so far",
    ),
    by_job_type: numbers,
    by_tag: numbers.describe(
      `the ${MOST_SHOWN} most expensive tags; a job counts under each of its tags`,
    ),
    by_pipeline: numbers.describe(`the ${MOST_SHOWN} most expensive pipelines, by pipeline_id`),
    records: z.int(),
    gpu_hours_total: z.number().describe("billed GPU hours"),
    tokens_total: z.number().describe("billed input and output tokens"),
    unbilled_gpu_hours: z
      .number()
      .describe("GPU hours of failed, cancelled and lost attempts that are not billed"),
    accruing_usd: usd.describe(
      "the part of `total_cost_usd` that still grows: live deployments' cost so far this month",
    ),
    storage: z.object({ gb_months: z.number(), amount_usd: z.number() }),
    estimated_invoice: z.object({
      currency: z.literal("USD"),
      lines: z.array(lineSchema),
      total_usd: z.number(),
    }),
    forecast_usd: usd.describe(
      "expected invoice at the month's end if usage continues as now; for a past month, its invoice",
    ),
    budget: budgetSchema
      .nullable()
      .describe("the current month's budget, whichever month is requested"),
    rate_card: z.string().describe("the rate card for jobs submitted now"),
  })
  .meta({ id: "BillingSummary" });

export function billingSummaryRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/billing/summary"],
    scope: "user",
    operationId: "getBillingSummary",
    tag: "Billing",
    summary: "Read a month's costs and forecast",
    query: z.strictObject({ ...periodQuery, ...tenantQuery }),
    responses: { 200: { description: "the month", schema: summarySchema } },
    errorCodes: { 404: ["user_not_found"] },
    async handle({ principal, query }) {
      const userId = await requireTenant(ctx, principal, query.user_id);
      // Read one snapshot. Otherwise a deployment's bill that is closed between two reads would
      // count twice: as an open bill, and in the month's totals.
      return await readSnapshot(ctx.pool, (db) => summarise(ctx, db, userId, query.period));
    },
  });
}

async function summarise(ctx: Context, db: Queryable, userId: string, period: string | undefined) {
  const card = await findRateCard(db, userId);
  const bounds = monthBounds(period, await readClock(db));
  const first = `${bounds.period}-01`;
  const month = await readMonth(db, userId, bounds, card);
  const budget = await findBudgetState(ctx, db, userId, card);
  const liveByTag = liveCosts(month, (share) => share.tags);
  const liveByPipeline = liveCosts(month, ({ pipeline_id: id }) => (id === null ? [] : [id]));
  return {
    user_id: userId,
    period: bounds.period,
    ...presentMonth(month),
    by_tag: await readHighestCosts(db, userId, first, "tag", liveByTag),
    by_pipeline: await readHighestCosts(db, userId, first, "pipeline", liveByPipeline),
    estimated_invoice: invoiceOf(month),
    budget: budget ? presentBudget(budget) : null,
    rate_card: card.name,
  };
}

function presentMonth(month: Month) {
  const sum = (pick: (type: Month["types"][number]) => number): number =>
    month.types.reduce((total, type) => total + pick(type), 0);
  return {
    total_cost_usd: month.recordsUsd.plus(month.accruingUsd).toNumber(),
    by_job_type: addCosts(
      costs(month.types.filter(({ records }) => records > 0)),
      month.accruing.map(({ usd }) => [DEPLOYMENT_TYPE, usd]),
    ),
    records: sum(({ records }) => records) + month.accruing.filter(({ isNew }) => isNew).length,
    gpu_hours_total: sum(({ gpu_hours }) => gpu_hours),
    tokens_total: sum(({ tokens }) => tokens),
    unbilled_gpu_hours: sum(({ unbilled_gpu_hours }) => unbilled_gpu_hours),
    accruing_usd: month.accruingUsd.toNumber(),
    storage: { gb_months: month.gbMonths, amount_usd: month.storageUsd.toNumber() },
    forecast_usd: month.forecastUsd.toNumber(),
  };
}

/** Returns costs by name: the sums of the `known` costs and the `added` amounts. */
function addCosts(known: Record<string, number>, added: NamedCost[]): Record<string, number> {
  const sums = { ...known };
  for (const [name, usd] of added) sums[name] = usd.plus(sums[name] ?? 0).toNumber();
  return sums;
}

/**
 * The costs of live deployments, by tag or by pipeline.
 * @param namesOf returns a deployment's tags, or its pipeline's id. Each gets the full cost.
 */
const liveCosts = (
  { accruing }: Month,
  namesOf: (share: Month["accruing"][number]) => string[],
): NamedCost[] =>
  accruing.flatMap((share) => namesOf(share).map((name): NamedCost => [name, share.usd]));

/**
 * Reads the MOST_SHOWN highest costs of a month by tag or pipeline, highest first.
 * @param live the costs of live deployments. The totals in the database do not include them.
 */
async function readHighestCosts(
  db: Queryable,
  userId: string,
  month: string,
  dimension: "tag" | "pipeline",
  live: NamedCost[],
): Promise<Record<string, number>> {
  const names = live.map(([name]) => name);
  const rows = await readMostExpensive(db, userId, month, dimension, MOST_SHOWN, names);
  const all = Object.entries(addCosts(costs(rows), live)).filter(([, usd]) => usd > 0);
  return Object.fromEntries(all.sort(([, a], [, b]) => b - a).slice(0, MOST_SHOWN));
}

const costs = (rows: { value: string; cost_usd: number }[]): Record<string, number> =>
  Object.fromEntries(rows.map(({ value, cost_usd }) => [value, cost_usd]));

/** Builds the month's invoice. Its lines add up to its total. */
function invoiceOf(month: Month) {
  const lines: z.infer<typeof lineSchema>[] = month.types
    .filter(({ records }) => records > 0)
    .map(({ value, records, cost_usd: usd }) => ({
      kind: "jobs",
      job_type: value as z.infer<typeof lineSchema>["job_type"],
      description: `${value}: ${records} ${records === 1 ? "record" : "records"}`,
      amount_usd: usd,
    }));
  const other = (kind: "accruing" | "storage", description: string, usd: Decimal): void => {
    if (usd.isZero()) return;
    const jobType = kind === "accruing" ? DEPLOYMENT_TYPE : null;
    lines.push({ kind, job_type: jobType, description, amount_usd: usd.toNumber() });
  };
  other("accruing", "live deployments, so far", month.accruingUsd);
  const { storageCard: card } = month;
  const price = card.basis === "metered" ? card.storagePerGbMonth : "0";
  other("storage", `${month.gbMonths} GB-months x ${price}`, month.storageUsd);
  return { currency: "USD", lines, total_usd: month.totalUsd.toNumber() };
}
