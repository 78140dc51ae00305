import { type TenantScope, tenantScopeOf } from "../../core/accounts/permissions";
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
import { listEventsSince, type TenantEventRow } from "../../services/accounts/tenant-events";
import type { Context } from "../../services/context";
import type { EventFeed } from "./event-feed";

/** If a client missed more events than this, its stream is not resumed: the client must reload. */
const MAX_MISSED = 2_000;
/**
 * The stream is also not resumed if more events than this would have to be sent: the missed ones,
 * and earlier ones that are sent again because the client may not have received them.
 */
const MAX_READ = 10_000;

export function eventsRoute(ctx: Context, feed: EventFeed): Route {
  return route({
    method: "GET",
    paths: ["/api/events"],
    scope: "user",
    outsideConnectionQueue: true,
    operationId: "streamEvents",
    tag: "Service",
    summary: "Stream the events of all your resources",
    description:
      "Server-sent events from now on. `job`: a change of a job's status, with the data `{job_id, job_type, " +
      "pipeline_id, status, attempts, worker_id, error_code, at}`. `pipeline`, `deployment` and `worker`: " +
      "`{pipeline_id, status, at}` and the like; the events of jobs show that a worker becomes busy or idle. " +
      "`ready`: `{resumed}`; if `resumed` is false, events may have been missed: read again what you show. " +
      `With Last-Event-ID, up to ${MAX_MISSED} missed events are sent, and some that you have received ` +
      "already: drop events whose id you know. Ids are not in the order of commits. An admin's key gets " +
      "the events of all tenants.",
    headers: lastEventId("the id of the last event that you received"),
    responses: { 200: { description: "the events", content: { [EVENT_STREAM]: eventSchema } } },
    async handle({ headers, request, reply, principal }) {
      const lastId = Number(headers["Last-Event-ID"] || Number.NaN);
      const { maxStreamS: maxS } = ctx.config.http;
      const { signal } = ctx.waitingRequests.register(request, principal, reply, { maxS });
      const events = follow(ctx, feed, tenantScopeOf(principal), lastId, signal);
      return sendEvents(reply, events, signal);
    },
  });
}

/**
 * Yields the events of a tenant scope: those that the client missed, then new ones.
 * @param lastId the last event that the client received; NaN: send new events only.
 */
async function* follow(
  ctx: Context,
  feed: EventFeed,
  tenantScope: TenantScope,
  lastId: number,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent | typeof KEEP_ALIVE> {
  // Open the reader before the query below. Otherwise events that commit between the two calls
  // would be missed.
  const reader = await feed.open(tenantScope, signal);
  try {
    const { lastId: readyId } = feed;
    const read = Number.isNaN(lastId)
      ? []
      : await listEventsSince(ctx.pool, tenantScope, lastId, MAX_READ + 1);
    const missed = read.filter(({ event_id }) => event_id > lastId);
    const resumed = !Number.isNaN(lastId) && missed.length <= MAX_MISSED && read.length <= MAX_READ;
    const sent = new Set<number>();
    for (const event of resumed ? read : []) {
      sent.add(event.event_id);
      yield asEvent(event);
    }
    yield { id: readyId, event: "ready", data: JSON.stringify({ resumed }) };
    while (!signal.aborted && !reader.hasMissed) {
      const events = await reader.next(KEEP_ALIVE_MS);
      for (const event of events) {
        // Skip an event that was sent above. Its id can be removed, because the feed delivers
        // each event only once.
        if (!sent.delete(event.event_id)) yield asEvent(event);
      }
      if (events.length === 0 && !signal.aborted) yield KEEP_ALIVE;
    }
  } finally {
    reader.close();
  }
}

function asEvent(row: TenantEventRow): ServerSentEvent {
  const { event_id: id, kind, subject, status, created_at } = row;
  const at = created_at.toISOString();
  const data =
    kind === "job"
      ? {
          job_id: subject,
          job_type: row.job_type,
          pipeline_id: row.pipeline_id,
          status,
          attempts: row.attempts,
          worker_id: row.worker_id,
          error_code: row.error_code,
          at,
        }
      : { [`${kind}_id`]: subject, status, at };
  return { id, event: kind, data: JSON.stringify(data) };
}
