import { z } from "zod";
import { presentBillingRecord } from "../core/billing-record";
import { NotFound } from "../core/errors";
import { JOB_TYPES } from "../core/job-types";
import type { Context } from "../infra/context";
import { findBillingRecord, listBillingRecords, summarise } from "../infra/database/billing";
import { readClock } from "../infra/database/clock";
import { listOf, pageOf, pageQuery, presentPage } from "../infra/http/lists";
import { viewerOf } from "../infra/http/principal";
import { type Route, route } from "../infra/http/route";
import { tenantFilter, tenantOf, tenantQuery } from "./tenant-filter";
import { timestamp } from "./timestamp";

const numbers = z.record(z.string(), z.number());

const recordSchema = z
  .object({
    job_id: z.string(),
    user_id: z.string(),
    job_type: z.enum(JOB_TYPES),
    metrics: numbers,
    unit_costs: numbers,
    cost_breakdown: numbers,
    total_cost_usd: z.number(),
    state: z.enum(["accruing", "final"]),
    rate_card: z.string().describe("the name of the card it was computed with"),
    formula: z.string().describe("how the total came about, with the numbers"),
    created_at: timestamp,
  })
  .meta({ id: "BillingRecord" });

const summarySchema = z
  .object({
    user_id: z.string(),
    period: z.string().describe("YYYY-MM, UTC"),
    total_cost_usd: z.number(),
    by_job_type: numbers,
    gpu_hours_total: z.number(),
    tokens_total: z.number(),
    estimated_invoice: z.object({
      currency: z.literal("USD"),
      lines: z.array(z.object({ job_type: z.enum(JOB_TYPES), amount_usd: z.number() })),
      total_usd: z.number(),
    }),
  })
  .meta({ id: "BillingSummary" });

const ratesSchema = z
  .object({
    rate_card: z.string(),
    currency: z.literal("USD"),
    generation_per_1m_tokens: z.number(),
    audit_per_1k_rows: z.number(),
    eval_per_100_samples: z.number(),
    deploy_per_month: z.number(),
    gpu_hour: numbers.describe("by a word of the GPU's name; `default` for any other"),
  })
  .meta({ id: "Rates" });

const summaryQuery = z.strictObject({
  period: z
    .string()
    .regex(/^[12][0-9]{3}-(0[1-9]|1[0-2])$/, "must be YYYY-MM")
    .optional()
    .describe("YYYY-MM, UTC; by default this month"),
  ...tenantQuery,
});

export function billingRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/billing/summary"],
      scope: "user",
      operationId: "getBillingSummary",
      tag: "Billing",
      summary: "What a month has cost",
      query: summaryQuery,
      answers: { 200: { description: "the month", schema: summarySchema } },
      async handle({ principal, query }) {
        const userId = tenantOf(principal, query.user_id);
        const period = query.period ?? (await readClock(ctx.pool)).slice(0, 7);
        const summary = await summarise(ctx.pool, userId, `${period}-01`);
        return { user_id: userId, period, ...summary, estimated_invoice: invoiceOf(summary) };
      },
    }),
    route({
      method: "GET",
      paths: ["/api/billing/records"],
      scope: "user",
      operationId: "listBillingRecords",
      tag: "Billing",
      summary: "List billing records, newest first",
      query: z.strictObject({ ...pageQuery, ...tenantQuery }),
      answers: {
        200: { description: "a page of records", schema: listOf("records", recordSchema) },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const viewer = tenantFilter(principal, query.user_id);
        const rows = await listBillingRecords(ctx.pool, viewer, page);
        return presentPage("records", rows, page, (row) => row.job_id, presentBillingRecord);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/billing/records/:job_id"],
      scope: "user",
      operationId: "getBillingRecord",
      tag: "Billing",
      summary: "Read a job's billing record",
      answers: { 200: { description: "the record", schema: recordSchema } },
      refusals: { 404: ["billing_record_not_found"] },
      async handle({ params: { job_id: jobId = "" }, principal }) {
        const record = await findBillingRecord(ctx.pool, jobId, viewerOf(principal));
        if (!record) throw new NotFound("billing_record", jobId, "job_id");
        return presentBillingRecord(record);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/billing/rates"],
      scope: "user",
      operationId: "getRates",
      tag: "Billing",
      summary: "The prices that a job submitted now is billed by",
      answers: { 200: { description: "the rate card", schema: ratesSchema } },
      handle: async () => presentRates(ctx),
    }),
  ];
}

function invoiceOf(summary: { total_cost_usd: number; by_job_type: Record<string, number> }) {
  const lines = Object.entries(summary.by_job_type).map(([jobType, amountUsd]) => ({
    job_type: jobType,
    amount_usd: amountUsd,
  }));
  return { currency: "USD", lines, total_usd: summary.total_cost_usd };
}

function presentRates({ rateCard }: Context) {
  const gpuHour = Object.entries(rateCard.gpuHour).map(([gpu, price]) => [gpu, Number(price)]);
  return {
    rate_card: rateCard.name,
    currency: "USD",
    generation_per_1m_tokens: Number(rateCard.generationPer1mTokens),
    audit_per_1k_rows: Number(rateCard.auditPer1kRows),
    eval_per_100_samples: Number(rateCard.evalPer100Samples),
    deploy_per_month: Number(rateCard.deployPerMonth),
    gpu_hour: Object.fromEntries(gpuHour),
  };
}
