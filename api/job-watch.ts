import type { Context } from "../infra/context";
import { glanceAtJobs, type JobGlance } from "../infra/database/job-events";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";

const LOOK_MS = 250;

interface Watched {
  watchers: Set<() => void>;
  /** What was seen last, as one text. */
  seen: string | undefined;
}

/**
 * Wakes whoever follows a job when it has moved. One query every quarter of a second looks at all jobs
 * that are followed in this process, none if none is: the statements that move jobs need not tell.
 */
export class JobWatch implements Part {
  readonly name = "job watch";
  private readonly watched = new Map<string, Watched>();
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
    const watched = this.watched.get(jobId) ?? { watchers: new Set(), seen: undefined };
    this.watched.set(jobId, watched);
    const watcher = new JobWatcher(() => {
      signal.removeEventListener("abort", watcher.wake);
      watched.watchers.delete(watcher.wake);
      if (watched.watchers.size === 0 && this.watched.get(jobId) === watched) {
        this.watched.delete(jobId);
      }
    });
    signal.addEventListener("abort", watcher.wake);
    watched.watchers.add(watcher.wake);
    return watcher;
  }

  private async look(): Promise<void> {
    if (this.watched.size === 0) return;
    for (const glance of await glanceAtJobs(this.ctx.pool, [...this.watched.keys()])) {
      const watched = this.watched.get(glance.job_id);
      const now = textOf(glance);
      if (!watched || watched.seen === now) continue;
      watched.seen = now;
      for (const wake of watched.watchers) wake();
    }
  }
}

const textOf = (glance: JobGlance & { last_event_id: number }): string =>
  `${glance.last_event_id} ${glance.status} ${glance.progress}`;

/** One follower of one job. */
export class JobWatcher {
  private moved = false;
  private resolve: (() => void) | undefined;

  constructor(readonly close: () => void) {}

  readonly wake = (): void => {
    this.moved = true;
    this.resolve?.();
  };

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
