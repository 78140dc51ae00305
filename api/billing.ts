import { z } from "zod";
import { presentBillingRecord } from "../core/billing-record";
import { NotFound } from "../core/errors";
import type { Context } from "../infra/context";
import { findBillingRecord, summarise } from "../infra/database/billing";
import type { Route } from "../infra/http/app";
import { parse } from "../infra/http/validation";
import { viewerOf } from "./viewer";

const summaryQuery = z.strictObject({
  period: z
    .string()
    .regex(/^\d{4}-(0[1-9]|1[0-2])$/, "must be YYYY-MM")
    .optional(),
});

export function billingRoutes(ctx: Context): Route[] {
  return [
    {
      method: "GET",
      paths: ["/api/billing/records/:job_id"],
      scope: "user",
      handle: async (request) => {
        const { job_id: jobId } = request.params as { job_id: string };
        const record = await findBillingRecord(ctx.pool, jobId, viewerOf(request.principal));
        if (!record) throw new NotFound("billing_record", jobId, "job_id");
        return presentBillingRecord(record);
      },
    },
    {
      method: "GET",
      paths: ["/api/billing/summary"],
      scope: "user",
      handle: async (request) => {
        const query = parse(summaryQuery, request.query);
        const period = query.period ?? new Date().toISOString().slice(0, 7);
        const { userId } = request.principal;
        const summary = await summarise(ctx.pool, userId, `${period}-01`);
        return {
          user_id: userId,
          period,
          ...summary,
          estimated_invoice: {
            currency: "USD",
            lines: Object.entries(summary.by_job_type).map(([jobType, amountUsd]) => ({
              job_type: jobType,
              amount_usd: amountUsd,
            })),
            total_usd: summary.total_cost_usd,
          },
        };
      },
    },
  ];
}
