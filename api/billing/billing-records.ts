import { z } from "zod";
import { tenantScopeOf } from "../../core/accounts/permissions";
import { monthBounds } from "../../core/billing/month";
import type { RateCard } from "../../core/billing/rate-card";
import { presentBillingRecord, withAccruedCost } from "../../core/billing/record";
import { type BillingRecord, billingRecordSchema, numbers } from "../../core/billing/record-schema";
import { NotFound } from "../../core/errors";
import { JOB_TYPES } from "../../core/jobs/job-types";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { type Route, route } from "../../platform/http/route";
import {
  type BillingRow,
  findBillingRecord,
  listBillingRecords,
} from "../../services/billing/billing-records";
import { findRateCard } from "../../services/billing/rate-cards";
import type { Context } from "../../services/context";
import { tenantFilter, tenantOf, tenantQuery } from "../accounts/tenant-filter";
import { periodQuery } from "./period";

const price = z.number().describe("USD; 0 if the card has no such price");

const ratesSchema = z
  .object({
    rate_card: z.string(),
    version: z.int(),
    currency: z.literal("USD"),
    basis: z
      .enum(["work", "metered"])
      .describe(
        "`work`: prices for the output of each job type; `metered`: prices for the usage of any job",
      ),
    gpu_hour: numbers.describe(
      "prices per hour. A key is a word of the GPU's name; `default` is for all other GPUs",
    ),
    generation_per_1m_tokens: price,
    distill_per_1m_tokens: price,
    audit_per_1k_rows: price,
    eval_per_100_samples: price,
    deploy_per_month: price.describe("for 30 days"),
    input_per_1m_tokens: price,
    output_per_1m_tokens: price,
    storage_per_gb_month: price,
  })
  .meta({ id: "Rates" });

const recordsQuery = z.strictObject({
  ...pageQuery,
  period: periodQuery.period.describe("month (YYYY-MM, UTC) in which the records were written"),
  job_type: z.array(z.enum(JOB_TYPES)).max(16).optional().describe("any of these"),
  sort: z
    .enum(["time", "cost"])
    .default("time")
    .describe(
      "`cost`: most expensive first; live deployments last, because their cost so far is not stored",
    ),
  ...tenantQuery,
});

function spanOf(period: string): { createdFrom: string; createdBefore: string } {
  const { start, end } = monthBounds(period, `${period}-01T00:00:00Z`);
  return { createdFrom: start.toISOString(), createdBefore: end.toISOString() };
}

export function billingRecordRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/billing/records"],
      scope: "user",
      operationId: "listBillingRecords",
      tag: "Billing",
      summary: "List billing records, newest or most expensive first",
      query: recordsQuery,
      responses: {
        200: { description: "a page of records", schema: listOf("records", billingRecordSchema) },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const tenantScope = tenantFilter(principal, query.user_id);
        const span = query.period === undefined ? {} : spanOf(query.period);
        const filter = { jobTypes: query.job_type, ...span };
        const byCost = query.sort === "cost";
        const rows = await listBillingRecords(ctx.pool, tenantScope, filter, byCost, page);
        return presentPage("records", rows, page, (row) => row.job_id, presentRecord);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/billing/records/:job_id"],
      scope: "user",
      operationId: "getBillingRecord",
      tag: "Billing",
      summary: "Read a job's billing record",
      responses: { 200: { description: "the record", schema: billingRecordSchema } },
      errorCodes: { 404: ["billing_record_not_found"] },
      async handle({ params: { job_id: jobId = "" }, principal }) {
        const record = await findBillingRecord(ctx.pool, jobId, tenantScopeOf(principal));
        if (!record) throw new NotFound("billing_record", jobId, "job_id");
        return presentRecord(record);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/billing/rates"],
      scope: "user",
      operationId: "getRates",
      tag: "Billing",
      summary: "Read the prices for new jobs",
      query: z.strictObject(tenantQuery),
      responses: { 200: { description: "the rate card", schema: ratesSchema } },
      async handle({ principal, query }) {
        return presentRates(await findRateCard(ctx.pool, tenantOf(principal, query.user_id)));
      },
    }),
  ];
}

function presentRates(card: RateCard): z.infer<typeof ratesSchema> {
  const gpuHour = Object.entries(card.gpuHour).map(([gpu, usd]) => [gpu, Number(usd)]);
  const work = card.basis === "metered" ? undefined : card;
  const metered = card.basis === "metered" ? card : undefined;
  return {
    rate_card: card.name,
    version: card.version ?? 1,
    currency: "USD",
    basis: card.basis ?? "work",
    gpu_hour: Object.fromEntries(gpuHour),
    generation_per_1m_tokens: Number(work?.generationPer1mTokens ?? 0),
    distill_per_1m_tokens: Number(work?.distillPer1mTokens ?? work?.generationPer1mTokens ?? 0),
    audit_per_1k_rows: Number(work?.auditPer1kRows ?? 0),
    eval_per_100_samples: Number(work?.evalPer100Samples ?? 0),
    deploy_per_month: Number(card.deployPerMonth),
    input_per_1m_tokens: Number(metered?.inputPer1mTokens ?? 0),
    output_per_1m_tokens: Number(metered?.outputPer1mTokens ?? 0),
    storage_per_gb_month: Number(metered?.storagePerGbMonth ?? 0),
  };
}

/** Presents a billing record. For a live deployment, the record shows the cost so far. */
const presentRecord = (row: BillingRow): BillingRecord =>
  presentBillingRecord(withAccruedCost(row));
