import { z } from "zod";
import { tenantScopeOf } from "../../core/accounts/permissions";
import { NotFound } from "../../core/errors";
import { timestamp } from "../../core/timestamp";
import { type Route, route } from "../../platform/http/route";
import type { Context } from "../../services/context";
import { findShownWorker } from "../../services/fleet/worker-list";
import { readSamples } from "../../services/fleet/worker-samples";
import { readTimeSpan, showTimeSpan, timeSpanFields, timeSpanQuery } from "../time-span";

const samplesSchema = z
  .object({
    worker_id: z.string(),
    ...timeSpanFields,
    samples: z
      .array(
        z.object({
          at: timestamp.describe("start of the bucket"),
          util: z.number().nullable().describe("mean, in percent"),
          util_max: z.number().nullable().describe("largest mean of one minute, in percent"),
          mem_used: z.number().nullable().describe("mean, in GB"),
          mem_total: z.number().nullable().describe("GB"),
        }),
      )
      .describe("oldest first; buckets without heartbeats are left out"),
  })
  .meta({ id: "WorkerSamples" });

export function workerSamplesRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/workers/:worker_id/samples"],
    scope: "user",
    operationId: "getWorkerSamples",
    tag: "Workers",
    summary: "Read a worker's utilisation and memory over the last day",
    description: "From the worker's heartbeats, one mean per minute. Kept for 24 hours.",
    query: z.strictObject(timeSpanQuery),
    responses: { 200: { description: "the samples", schema: samplesSchema } },
    errorCodes: { 404: ["worker_not_found"] },
    async handle({ params: { worker_id: id = "" }, principal, query }) {
      const worker = await findShownWorker(ctx.pool, id, tenantScopeOf(principal));
      if (!worker) throw new NotFound("worker", id, "worker_id");
      const span = await readTimeSpan(ctx.pool, query);
      const samples = await readSamples(ctx.pool, id, span);
      return {
        worker_id: id,
        ...showTimeSpan(span),
        samples: samples.map((sample) => ({ ...sample, at: sample.at.toISOString() })),
      };
    },
  });
}
