import { ForgeError } from "./errors.ts";
import { follow, StreamState } from "./following.ts";
import type { RequestOptions } from "./options.ts";
import { dataOf } from "./sse.ts";
import type { Transport } from "./transport.ts";

/** An event of the tenant's stream. */
export interface TenantEvent {
  /**
   * The kind of the changed object (`job`, `pipeline`, `deployment`, `worker`), or `ready` at the
   * start of a stream. If a `ready` event has `resumed: false`, events may have been missed: read
   * the state again.
   */
  event: string;
  resumed?: boolean;
  job_id?: string;
  pipeline_id?: string | null;
  deployment_id?: string;
  worker_id?: string | null;
  /** The object's new status, as in the API. */
  status?: string;
  job_type?: string;
  attempts?: number;
  error_code?: string | null;
  at?: string;
}

export interface TenantEventOptions extends RequestOptions {
  /** Ends after this number of events. Default: never. */
  limit?: number | undefined;
}

const MAX_KNOWN = 10_000;

/** Yields the tenant's events. Drops duplicates, by id: a resumed stream repeats some events. */
export async function* tenantEvents(
  transport: Transport,
  { limit = Number.POSITIVE_INFINITY, ...options }: TenantEventOptions,
): AsyncGenerator<TenantEvent, void, undefined> {
  if (limit < 0) throw new ForgeError("limit must not be negative");
  const known = new Set<string>();
  let left = limit;
  if (left === 0) return;
  for await (const sent of follow(transport, new StreamState("/api/events"), options)) {
    if (sent.id && sent.event !== "ready") {
      if (known.has(sent.id)) continue;
      known.add(sent.id);
      if (known.size > MAX_KNOWN) known.delete(known.values().next().value as string);
    }
    yield { ...dataOf(sent), event: sent.event };
    left -= 1;
    if (left === 0) return;
  }
}
