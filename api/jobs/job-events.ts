import { type TenantScope, tenantScopeOf } from "../../core/accounts/permissions";
import { isFinal } from "../../core/jobs/states";
import { type Route, route } from "../../platform/http/route";
import {
  EVENT_STREAM,
  eventSchema,
  KEEP_ALIVE,
  KEEP_ALIVE_MS,
  lastEventId,
  type ServerSentEvent,
  sendEvents,
} from "../../platform/http/sse";
import type { Context } from "../../services/context";
import { findJobSnapshot, type JobEventRow, listJobEvents } from "../../services/jobs/job-events";
import type { JobWatch } from "./job-watch";
import { requireJobSnapshot } from "./jobs";

export function jobEventsRoute(ctx: Context, watch: JobWatch): Route {
  return route({
    method: "GET",
    paths: ["/api/jobs/:job_id/events"],
    scope: "user",
    outsideConnectionQueue: true,
    operationId: "streamJobEvents",
    tag: "Jobs",
    summary: "Stream a job's events",
    description:
      "Server-sent events. `status`: each past change of the job's status, then each new one; the data is " +
      "`{job_id, status, attempts, worker_id, error_code, at}`. `progress`: `{job_id, progress}`, " +
      "when the progress changes; these events have no id. The stream ends after the job's final status.",
    headers: lastEventId(
      "the id of the last event that you received; the stream continues after that event",
    ),
    responses: {
      200: { description: "the events", content: { [EVENT_STREAM]: eventSchema } },
      204: { description: "the job has ended, and you have received its last event" },
    },
    errorCodes: { 404: ["job_not_found"] },
    async handle({ params, headers, request, reply, principal }) {
      const tenantScope = tenantScopeOf(principal);
      const { job_id: jobId, status } = await requireJobSnapshot(ctx, params, tenantScope);
      const afterId = Number(headers["Last-Event-ID"] ?? 0);
      const hasMore = async () =>
        (await listJobEvents(ctx.pool, jobId, tenantScope, afterId)).length > 0;
      // 204 tells a browser's EventSource not to connect again.
      if (isFinal(status) && !(await hasMore())) return reply.code(204).send();
      const { maxStreamS: maxS } = ctx.config.http;
      const { signal } = ctx.waitingRequests.register(request, principal, reply, { maxS });
      const events = follow(ctx, watch, { jobId, tenantScope, afterId }, signal);
      return sendEvents(reply, events, signal);
    },
  });
}

interface Followed {
  jobId: string;
  tenantScope: TenantScope;
  afterId: number;
}

async function* follow(
  ctx: Context,
  watch: JobWatch,
  { jobId, tenantScope, afterId }: Followed,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent | typeof KEEP_ALIVE> {
  const watcher = watch.watch(jobId, signal);
  let lastId = afterId;
  let progress: number | null = null;
  try {
    while (!signal.aborted) {
      const events = await listJobEvents(ctx.pool, jobId, tenantScope, lastId);
      for (const event of events) {
        lastId = event.event_id;
        yield asEvent(event);
      }
      const job = await findJobSnapshot(ctx.pool, jobId, tenantScope);
      if (!job) return;
      // A job that has ended sends no more progress: its last event is its status.
      if (!isFinal(job.status) && job.progress !== null && job.progress !== progress) {
        progress = job.progress;
        yield { event: "progress", data: JSON.stringify({ job_id: jobId, progress }) };
      }
      // The event of the final status may have been written after this round read the events. So
      // the stream ends only after a round without events.
      if (isFinal(job.status) && events.length === 0) return;
      if (isFinal(job.status)) continue;
      watcher.markRead({ ...job, last_event_id: lastId });
      // Read again only when the watcher reports a change.
      while (!(await watcher.next(KEEP_ALIVE_MS))) yield KEEP_ALIVE;
    }
  } finally {
    watcher.close();
  }
}

function asEvent(row: JobEventRow): ServerSentEvent {
  const { event_id: id, job_id, status, attempts, worker_id, error_code, created_at } = row;
  const at = created_at.toISOString();
  return {
    id,
    event: "status",
    data: JSON.stringify({ job_id, status, attempts, worker_id, error_code, at }),
  };
}
