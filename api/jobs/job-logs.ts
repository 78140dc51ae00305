import { z } from "zod";
import { tenantScopeOf } from "../../core/accounts/permissions";
import { logKey } from "../../core/jobs/attempt-files";
import { sendObject } from "../../platform/http/byte-range";
import { type Route, route } from "../../platform/http/route";
import { EVENT_STREAM, eventSchema, lastEventId, sendEvents } from "../../platform/http/sse";
import type { Context } from "../../services/context";
import { followLog, LOG_EVENT_ID, positionAfter } from "./follow-log";
import type { JobWatch } from "./job-watch";
import { attemptNumber, requireJobSnapshot } from "./jobs";

const logQuery = z.strictObject({
  attempt: attemptNumber.describe("the attempt whose log is read; by default the latest"),
  follow: z.enum(["true", "false"]).default("false").describe("true: stream server-sent events"),
});

export function jobLogRoute(ctx: Context, watch: JobWatch): Route {
  return route({
    method: "GET",
    paths: ["/api/jobs/:job_id/logs"],
    scope: "user",
    outsideConnectionQueue: true,
    operationId: "getJobLog",
    tag: "Jobs",
    summary: "Read or follow a job's log",
    description:
      "The log as text; empty if there is none yet. With `follow=true`, server-sent events: `log`, with " +
      "the data `{attempt, offset, text}`, when the log grows (without `attempt`, also in later " +
      "attempts); `end`, with the job's status, when the log is complete.",
    query: logQuery,
    headers: {
      Range: z.string().optional().describe("bytes=a-b, bytes=a- or bytes=-n"),
      ...lastEventId(
        "the id of the last event that you received; the stream continues after that event",
        LOG_EVENT_ID,
      ),
    },
    responses: {
      200: {
        description: "the log",
        content: { "text/plain": z.string(), [EVENT_STREAM]: eventSchema },
      },
      206: { description: "the requested range", content: { "text/plain": z.string() } },
    },
    errorCodes: { 404: ["job_not_found"], 416: ["range_not_satisfiable"] },
    async handle({ params, headers, request, reply, query, principal }) {
      const tenantScope = tenantScopeOf(principal);
      const seen = positionAfter(headers["Last-Event-ID"]);
      const job = await requireJobSnapshot(ctx, params, tenantScope);
      if (query.follow === "false") {
        const key = logKey(job.job_id, query.attempt ?? Math.max(1, job.attempts));
        const sizeBytes = (await ctx.store.sizeOf(key)) ?? 0;
        reply.type("text/plain; charset=utf-8");
        return sendObject(ctx.store, { key, sizeBytes }, headers.Range, reply);
      }
      const { attempt = seen?.attempt ?? Math.max(1, job.attempts) } = query;
      const from = seen?.attempt === attempt ? seen : { attempt, offset: 0 };
      const { maxStreamS: maxS } = ctx.config.http;
      const { signal } = ctx.waitingRequests.register(request, principal, reply, { maxS });
      const followed = { jobId: job.job_id, tenantScope, from, only: query.attempt };
      return sendEvents(reply, followLog(ctx, watch, followed, signal), signal);
    },
  });
}
