import type { TenantEvent } from "@forge/sdk";
import type { QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Signed } from "./context";
import type { Session } from "./session";

/** Of the tabs that see the same: an admin's, or those of one tenant. Another tab may be signed in with another key. */
const nameFor = ({ scope, userId }: Session): string =>
  scope === "admin" ? "forge.events" : `forge.events.${userId}`;
/** Events that arrive together ask for each list once; a busy tenant's pages ask no more often than this. */
const GATHER_MS = 250;
const PAUSE_MS = 1_500;
const RETRY_MS = 5_000;

/** What to ask for again after an event of each kind. */
const TOUCHES: Record<string, readonly string[]> = {
  job: ["jobs"],
  pipeline: ["pipelines"],
  deployment: ["deployments"],
  worker: ["workers"],
};

/**
 * Follows the tenant's stream of events and has what they concern asked for again, so that pages change
 * at once. Polling goes on beside it: without a stream everything still changes within seconds.
 *
 * One tab of a browser reads the stream and tells the others, because browsers allow six connections to
 * a host. Where there are no locks to choose that tab by (plain HTTP), no tab does.
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
      // Aborted while it waited for the lock, or read.
      .catch(() => undefined);
    return () => {
      ended.abort();
      channel.close();
      gatherer.stop();
    };
  }, [forge, session, queries]);
}

/** Reads again after a failure: a refused key is noticed by the polls. */
async function untilAborted(read: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await read().catch(() => undefined);
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Collects events for a moment, then has the queries asked for again that someone is looking at. */
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
