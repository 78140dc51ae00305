import { z } from "zod";
import { addCounts, emptyCounts, quantile } from "../../core/deployments/latency";
import { timestamp } from "../../core/timestamp";
import { type Route, route } from "../../platform/http/route";
import type { Context } from "../../services/context";
import { listRequests, type RequestMinute } from "../../services/deployments/deployment-requests";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";
import { readTimeSpan, showTimeSpan, timeSpanFields, timeSpanQuery } from "../time-span";
import type { DeploymentRequests } from "./deployment-requests";
import { requireDeployment } from "./deployments";

const seconds = z.number().nullable();
const counts = {
  requests: z.int(),
  errors: z
    .int()
    .describe("requests that no server answered, that got a 5xx, or whose answer was cut off"),
  latency_p50_s: seconds.describe("median time to the end of the answer; at most 10 % off"),
  latency_p99_s: seconds.describe("99th percentile; at most 10 % off"),
  input_tokens: z
    .int()
    .nullable()
    .describe("sum from the answers' `usage`; null: no answer had it"),
  output_tokens: z.int().nullable(),
};

const statsSchema = z
  .object({
    deployment_id: z.string(),
    ...timeSpanFields,
    total: z.object(counts),
    buckets: z
      .array(z.object({ at: timestamp.describe("start of the bucket"), ...counts }))
      .describe("oldest first; buckets without requests are left out"),
  })
  .meta({ id: "DeploymentStats" });

export function deploymentStatsRoute(ctx: Context, requests: DeploymentRequests): Route {
  return route({
    method: "GET",
    paths: ["/api/deployments/:deployment_id/stats"],
    scope: "user",
    operationId: "getDeploymentStats",
    tag: "Deployments",
    summary: "Read a deployment's request statistics",
    description:
      "Requests to the deployment's stable address, counted by the minute and kept for 24 hours. Requests that " +
      "another server process forwarded appear after some seconds. Tokens are read from `usage` in OpenAI's " +
      "protocol; for a stream, only if the request asks for it " +
      '(`"stream_options": {"include_usage": true}`).',
    query: z.strictObject({ ...timeSpanQuery, ...tenantQuery }),
    responses: { 200: { description: "the counts", schema: statsSchema } },
    errorCodes: { 400: ["ambiguous_id"], 404: ["deployment_not_found"] },
    async handle({ params, principal, query }) {
      const tenantScope = tenantFilter(principal, query.user_id);
      const deployment = await requireDeployment(ctx, params, tenantScope);
      const { deployment_id: id, artifact_id: shownId } = deployment;
      await requests.writeCountsOf(id);
      const span = await readTimeSpan(ctx.pool, query);
      const minutes = await listRequests(ctx.pool, id, span);
      return {
        deployment_id: shownId,
        ...showTimeSpan(span),
        total: countsOf(minutes),
        buckets: byBucket(minutes).map(([at, each]) => ({ at, ...countsOf(each) })),
      };
    },
  });
}

/** Groups minutes by the start of their bucket. */
function byBucket(minutes: RequestMinute[]): [string, RequestMinute[]][] {
  const buckets = new Map<string, RequestMinute[]>();
  for (const minute of minutes) {
    const at = minute.bucket.toISOString();
    const known = buckets.get(at);
    if (known) known.push(minute);
    else buckets.set(at, [minute]);
  }
  return [...buckets];
}

function countsOf(minutes: RequestMinute[]): z.output<typeof statsSchema>["total"] {
  const latency = emptyCounts();
  for (const minute of minutes) addCounts(latency, minute.latency);
  const sum = (column: "requests" | "errors"): number =>
    minutes.reduce((total, minute) => total + minute[column], 0);
  const known = (column: "input_tokens" | "output_tokens"): number | null => {
    const values = minutes.flatMap((minute) => minute[column] ?? []);
    return values.length > 0 ? values.reduce((total, value) => total + value, 0) : null;
  };
  return {
    requests: sum("requests"),
    errors: sum("errors"),
    latency_p50_s: inSeconds(quantile(latency, 0.5)),
    latency_p99_s: inSeconds(quantile(latency, 0.99)),
    input_tokens: known("input_tokens"),
    output_tokens: known("output_tokens"),
  };
}

const inSeconds = (ms: number | null): number | null =>
  ms === null ? null : Math.round(ms) / 1000;
