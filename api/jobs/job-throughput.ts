import { z } from "zod";
import { JOB_TYPES } from "../../core/jobs/job-types";
import { timestamp } from "../../core/timestamp";
import { type Route, route } from "../../platform/http/route";
import type { Context } from "../../services/context";
import { readThroughput } from "../../services/jobs/job-throughput";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";
import { readTimeSpan, showTimeSpan, timeSpanFields, timeSpanQuery } from "../time-span";

const bucketSchema = z.object({
  at: timestamp.describe("start of the bucket"),
  submitted: z.int(),
  started: z.int().describe("jobs dispatched to a worker for the first time"),
  completed: z.int(),
  failed: z.int(),
  waiting: z.int().describe("jobs that were submitted but not started at the bucket's end"),
  running: z.int().describe("jobs that were started but not ended at the bucket's end"),
});

const throughputSchema = z
  .object({
    ...timeSpanFields,
    buckets: z.array(bucketSchema).describe("oldest first, including buckets without jobs"),
  })
  .meta({ id: "JobThroughput" });

export function jobThroughputRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/jobs/throughput"],
    scope: "user",
    operationId: "getJobThroughput",
    tag: "Jobs",
    summary: "Read job throughput and queue depth over time",
    description:
      "A job counts as running from its first start to its end, also while a later attempt waits.",
    query: z.strictObject({
      ...timeSpanQuery,
      job_type: z.array(z.enum(JOB_TYPES)).max(16).optional().describe("any of these"),
      ...tenantQuery,
    }),
    responses: { 200: { description: "the buckets of the time span", schema: throughputSchema } },
    async handle({ principal, query }) {
      const span = await readTimeSpan(ctx.pool, query);
      const tenantScope = tenantFilter(principal, query.user_id);
      const buckets = await readThroughput(ctx.pool, tenantScope, query.job_type, span);
      return {
        ...showTimeSpan(span),
        buckets: buckets.map((bucket) => ({ ...bucket, at: bucket.at.toISOString() })),
      };
    },
  });
}
