import { Readable } from "node:stream";
import { z } from "zod";
import { monthBounds } from "../../core/billing/month";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import { type Route, route } from "../../platform/http/route";
import { readClock } from "../../platform/postgres/clock";
import type { Queryable } from "../../platform/postgres/pool";
import { type LineRow, readLines } from "../../services/billing/billing-months";
import { csvOf } from "../../services/billing/csv";
import type { Context } from "../../services/context";
import { requireTenant, tenantQuery } from "../accounts/tenant-filter";
import { periodQuery } from "./period";

const COLUMNS = [
  "line_id",
  "created_at",
  "job_id",
  "job_type",
  "pipeline_id",
  "tags",
  "gpu_hours",
  "tokens",
  "gb_months",
  "cost_usd",
  "rate_card",
  "rate_card_version",
  "formula",
] as const;

const BATCH = 1_000;

export function billingExportRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/billing/export"],
    scope: "user",
    operationId: "exportBilling",
    tag: "Billing",
    summary: "Download a month's billing lines as CSV",
    description:
      "One line for each billed job. A deployment has one line for each of its months, written when the month " +
      "is over or the deployment is stopped. Stored artifacts have one line if the rate card has a storage " +
      "price. `cost_usd` adds up to the summary's `total_cost_usd` plus its storage cost.",
    query: z.strictObject({ ...periodQuery, ...tenantQuery }),
    responses: {
      200: {
        description: "the lines, with a header line",
        content: { "text/csv": z.string() },
        headers: { "Content-Disposition": "a file name" },
      },
    },
    errorCodes: { 404: ["user_not_found"] },
    async handle({ principal, query, reply }) {
      const userId = await requireTenant(ctx, principal, query.user_id);
      const { period } = monthBounds(query.period, await readClock(ctx.pool));
      reply.header("content-type", "text/csv; charset=utf-8");
      reply.header("content-disposition", `attachment; filename="forge-${userId}-${period}.csv"`);
      return Readable.from(csvLines(ctx.pool, userId, `${period}-01`));
    },
  });
}

/** Reads the lines in batches, so that memory use does not depend on their number. */
async function* csvLines(db: Queryable, userId: string, month: string): AsyncGenerator<string> {
  let after = "";
  for (let header = true; ; header = false) {
    const lines = await readLines(db, userId, month, after, BATCH);
    const last = lines.at(-1);
    if (header || last) yield csvOf(COLUMNS, lines.map(presentLine), { header });
    if (!last || lines.length < BATCH) return;
    after = last.line_id;
  }
}

function presentLine(line: LineRow) {
  return {
    line_id: line.line_id,
    created_at: line.created_at.toISOString(),
    job_id: line.job_id,
    job_type: line.job_type ?? "storage",
    pipeline_id: line.pipeline_id,
    tags: line.tags?.join(" ") ?? null,
    gpu_hours: line.gpu_hours,
    tokens: line.tokens,
    gb_months: line.gb_months,
    cost_usd: line.cost_usd,
    rate_card: line.rate_card?.name ?? null,
    rate_card_version: line.rate_card?.version ?? 1,
    formula: formulaOf(line),
  };
}

/**
 * Returns the formula of a line's cost. Usually this is `line.formula`, the formula of the billing
 * record. Two kinds of lines need another formula. A deployment's line covers only one month, but
 * its record covers all months of the deployment. A storage line has no record.
 */
function formulaOf(line: LineRow): string | null {
  const { rate_card: card, job_type: type, period, gb_months: gb } = line;
  if (type === null) {
    const price = card?.basis === "metered" ? card.storagePerGbMonth : "0";
    return `${gb} GB-months x ${price} = ${line.cost_usd} USD`;
  }
  if (type !== DEPLOYMENT_TYPE || line.cost_usd === 0) return line.formula;
  return `${period} of ${card?.deployPerMonth} per month x (days / 30.0) = ${line.cost_usd} USD`;
}
