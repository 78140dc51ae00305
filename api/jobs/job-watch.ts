import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../../services/context";
import { glanceAtJobs, type JobGlance } from "../../services/jobs/job-events";

const LOOK_MS = 250;

/**
 * Wakes whoever follows a job when it has moved. One query every quarter of a second looks at all jobs
 * that are followed in this process, none if none is: the statements that move jobs need not tell.
 */
export class JobWatch implements Component {
  readonly name = "job watch";
  private readonly watched = new Map<string, Set<JobWatcher>>();
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("job watch", LOOK_MS, () => this.look(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  /** Watches a job until `close`; register first, then read, so that no change falls in between. */
  watch(jobId: string, signal: AbortSignal): JobWatcher {
    const watchers = this.watched.get(jobId) ?? new Set();
    this.watched.set(jobId, watchers);
    const watcher = new JobWatcher(() => {
      signal.removeEventListener("abort", watcher.wake);
      watchers.delete(watcher);
      if (watchers.size === 0 && this.watched.get(jobId) === watchers) this.watched.delete(jobId);
    });
    signal.addEventListener("abort", watcher.wake);
    watchers.add(watcher);
    return watcher;
  }

  private async look(): Promise<void> {
    if (this.watched.size === 0) return;
    for (const glance of await glanceAtJobs(this.ctx.pool, [...this.watched.keys()])) {
      for (const watcher of this.watched.get(glance.job_id) ?? []) watcher.compare(glance);
    }
  }
}

type Seen = Pick<JobGlance, "status" | "progress"> & { last_event_id: number };

/** One follower of one job. */
export class JobWatcher {
  private moved = false;
  private seen: Seen | undefined;
  private resolve: (() => void) | undefined;

  constructor(readonly close: () => void) {}

  readonly wake = (): void => {
    this.moved = true;
    this.resolve?.();
  };

  /** Its follower has read this itself: it need not be woken for it. */
  markRead(seen: Seen): void {
    this.seen = seen;
  }

  /** Wakes it if the job is not as it was seen last. */
  compare(now: Seen): void {
    const { seen } = this;
    // A client may say that it has events which are still to come.
    const hasMore = seen === undefined || now.last_event_id > seen.last_event_id;
    if (!hasMore && now.status === seen.status && now.progress === seen.progress) return;
    this.seen = { ...now, last_event_id: Math.max(now.last_event_id, seen?.last_event_id ?? 0) };
    this.wake();
  }

  /** Whether the job has moved since the last call, or the signal aborted; waits so long for that. */
  async next(timeoutMs: number): Promise<boolean> {
    if (!this.moved) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.resolve = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const { moved } = this;
    this.moved = false;
    return moved;
  }
}
