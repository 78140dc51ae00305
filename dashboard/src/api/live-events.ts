import type { TenantEvent } from "@forge/sdk";
import type { QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Signed } from "./context";
import type { Session } from "./session";

/**
 * The name of the lock and of the BroadcastChannel by which tabs share one event stream. Tabs have
 * the same name only if they show the same data. An admin's tab shows the data of all tenants. Any
 * other tab shows the data of one tenant.
 */
const nameFor = ({ scope, userId }: Session): string =>
  scope === "admin" ? "forge.events" : `forge.events.${userId}`;
/** Minimum time to collect events before a refetch, so that one refetch serves several events. */
const GATHER_MS = 250;
/** Minimum time between two refetches. Limits the load that a busy tenant causes. */
const PAUSE_MS = 1_500;
const RETRY_MS = 5_000;

/** The queries to refetch after an event of each kind. */
const TOUCHES: Record<string, readonly string[]> = {
  job: ["jobs"],
  pipeline: ["pipelines"],
  deployment: ["deployments"],
  worker: ["workers"],
};

/**
 * Refetches the queries that the events of the stream affect, so that pages change soon after an
 * event. Without a stream, polling still updates pages within seconds.
 *
 * Browsers allow six connections to a host, so one tab reads the stream and forwards the events to
 * the others. The Web Locks API elects that tab. Over plain HTTP browsers do not have this API, so
 * no tab reads the stream.
 */
export function useLiveEvents({ forge, session }: Signed, queries: QueryClient): void {
  useEffect(() => {
    if (!("locks" in navigator) || !("BroadcastChannel" in window)) return;
    const ended = new AbortController();
    const { signal } = ended;
    const name = nameFor(session);
    const channel = new BroadcastChannel(name);
    const gatherer = new Gatherer(queries);
    channel.addEventListener("message", ({ data }: MessageEvent<TenantEvent>) =>
      gatherer.add(data),
    );
    const read = async (): Promise<void> => {
      for await (const event of forge.events({ signal })) {
        gatherer.add(event);
        channel.postMessage(event);
      }
    };
    navigator.locks
      .request(name, { signal }, () => untilAborted(read, signal))
      // The lock request rejects if the signal is aborted while this tab waits for the lock.
      .catch(() => undefined);
    return () => {
      ended.abort();
      channel.close();
      gatherer.stop();
    };
  }, [forge, session, queries]);
}

/**
 * Calls `read` again whenever it ends or fails, until the signal is aborted. Ignores its errors. If
 * the key is refused, the pages' polls detect this and end the session.
 */
async function untilAborted(read: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await read().catch(() => undefined);
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/**
 * Collects events for a moment, then refetches the active queries that the events affect. A query
 * with `meta: { live: false }` is not refetched.
 */
class Gatherer {
  private readonly touched = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastMs = 0;

  constructor(private readonly queries: QueryClient) {}

  add({ event, resumed }: TenantEvent): void {
    const names =
      event === "ready" && resumed === false ? Object.values(TOUCHES).flat() : TOUCHES[event];
    for (const name of names ?? []) this.touched.add(name);
    if (this.touched.size === 0 || this.timer !== undefined) return;
    const waitMs = Math.max(GATHER_MS, this.lastMs + PAUSE_MS - performance.now());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.lastMs = performance.now();
      const [...roots] = this.touched;
      this.touched.clear();
      for (const root of roots) {
        void this.queries.refetchQueries({
          queryKey: [root],
          type: "active",
          predicate: ({ meta }) => meta?.live !== false && !document.hidden,
        });
      }
    }, waitMs);
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
