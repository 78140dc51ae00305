import { z } from "zod";
import { tenantScopeOf } from "../../core/accounts/permissions";
import { timestamp } from "../../core/timestamp";
import { type Route, route } from "../../platform/http/route";
import type { Context } from "../../services/context";
import { listMetrics, type MetricsPoint } from "../../services/jobs/job-metrics";
import { attemptNumber, requireJobSnapshot } from "./jobs";

/** The name of the series for progress. */
const PROGRESS = "progress";

const metricsSchema = z
  .object({
    job_id: z.string(),
    attempt: z.int(),
    at: z.array(timestamp).describe("times of the points, oldest first"),
    series: z
      .record(z.string(), z.array(z.number().nullable()))
      .describe("by metric name, one value for each time in `at`; null if none was reported"),
  })
  .meta({ id: "JobMetrics" });

export function jobMetricsRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/jobs/:job_id/metrics"],
    scope: "user",
    operationId: "getJobMetrics",
    tag: "Jobs",
    summary: "Read a job's metrics over time",
    description:
      "The job's progress and the numbers in its `::forge` lines, from its worker's heartbeats: a point every " +
      "10 s, fewer for long attempts. Kept for 30 days. The job's output is described in its result and manifest.",
    query: z.strictObject({
      attempt: attemptNumber.describe("by default the latest attempt"),
      max_points: z.coerce
        .number()
        .int()
        .min(1)
        .max(5_000)
        .default(2_000)
        .describe("if there are more points, every n-th and the last are shown"),
    }),
    responses: { 200: { description: "the series", schema: metricsSchema } },
    errorCodes: { 404: ["job_not_found"] },
    async handle({ params, principal, query }) {
      const tenantScope = tenantScopeOf(principal);
      const { job_id: jobId, attempts } = await requireJobSnapshot(ctx, params, tenantScope);
      const { attempt = Math.max(1, attempts), max_points: maxPoints } = query;
      const points = await listMetrics(ctx.pool, jobId, attempt, tenantScope, maxPoints);
      return {
        job_id: jobId,
        attempt,
        at: points.map(({ at }) => at.toISOString()),
        series: seriesOf(points),
      };
    },
  });
}

function seriesOf(points: MetricsPoint[]): Record<string, (number | null)[]> {
  const names = new Set(points.flatMap(({ metrics }) => Object.keys(metrics)));
  const series = [...names].map((name): [string, (number | null)[]] => [
    name,
    points.map(({ metrics }) => metrics[name] ?? null),
  ]);
  const hasProgress = points.some(({ progress }) => progress !== null);
  if (hasProgress) series.unshift([PROGRESS, points.map(({ progress }) => progress)]);
  return Object.fromEntries(series);
}
