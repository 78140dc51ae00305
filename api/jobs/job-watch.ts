import { Loop } from "../../platform/loop";
import type { Context } from "../../services/context";
import { type JobSnapshot, listJobSnapshots } from "../../services/jobs/job-events";

const POLL_MS = 250;

/**
 * Wakes a job's followers when it changes. One query every 250 ms checks all followed jobs of the
 * process, so that statements that change jobs need not notify anyone.
 */
export class JobWatch {
  private readonly watched = new Map<string, Set<JobWatcher>>();
  readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("job watch", POLL_MS, () => this.poll(), ctx);
  }

  /** Watches a job until `close`. Call it before reading the job, so that no change is missed. */
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

  private async poll(): Promise<void> {
    if (this.watched.size === 0) return;
    for (const snapshot of await listJobSnapshots(this.ctx.pool, [...this.watched.keys()])) {
      for (const watcher of this.watched.get(snapshot.job_id) ?? []) watcher.compare(snapshot);
    }
  }
}

type Seen = Pick<JobSnapshot, "status" | "progress"> & { last_event_id: number };

/** One follower of one job. */
export class JobWatcher {
  private changed = false;
  private seen: Seen | undefined;
  private resolve: (() => void) | undefined;

  constructor(readonly close: () => void) {}

  readonly wake = (): void => {
    this.changed = true;
    this.resolve?.();
  };

  /** Records the state that the follower has read itself. This state won't wake the follower. */
  markRead(seen: Seen): void {
    this.seen = seen;
  }

  /** Wakes the follower if the job differs from the state that the follower knows. */
  compare(now: Seen): void {
    const { seen } = this;
    // Use `>` and not `!==`: a client may send a Last-Event-ID above the job's last event id. Then
    // `!==` would wake this follower on each poll.
    const hasMore = seen === undefined || now.last_event_id > seen.last_event_id;
    if (!hasMore && now.status === seen.status && now.progress === seen.progress) return;
    this.seen = { ...now, last_event_id: Math.max(now.last_event_id, seen?.last_event_id ?? 0) };
    this.wake();
  }

  /**
   * Waits up to `timeoutMs`. True if the job changed since the last call, or the signal aborted.
   */
  async next(timeoutMs: number): Promise<boolean> {
    if (!this.changed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.resolve = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const { changed } = this;
    this.changed = false;
    return changed;
  }
}
