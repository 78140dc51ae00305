import { z } from "zod";
import { type Route, route } from "../platform/http/route";
import type { Context } from "../services/context";
import { DatabaseMetrics } from "../services/metrics/database-metrics";

const TEXT = "text/plain; version=0.0.4; charset=utf-8";

/** Metrics for Prometheus: of this process, of the database, and of Temporal's SDK. */
export function metricsRoute(ctx: Context): Route {
  const databaseMetrics = new DatabaseMetrics(ctx);
  return route({
    method: "GET",
    paths: ["/metrics"],
    scope: "admin",
    operationId: "getMetrics",
    tag: "Service",
    summary: "Metrics, in Prometheus's text format",
    responses: {
      200: {
        description: "metrics of this process and of the database",
        content: { "text/plain": z.string() },
      },
    },
    async handle({ reply }) {
      const parts = [ctx.metrics.text(), databaseMetrics.text(), ctx.metrics.temporal.text()];
      reply.type(TEXT);
      return (await Promise.all(parts)).join("\n");
    },
  });
}
