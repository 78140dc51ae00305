import type { Context } from "../infra/context";
import { glanceAtJobs, type JobGlance } from "../infra/database/job-events";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";

const LOOK_MS = 250;

/**
 * Wakes whoever follows a job when it has moved. One query every quarter of a second looks at all jobs
 * that are followed in this process, none if none is: the statements that move jobs need not tell.
 */
export class JobWatch implements Part {
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
      for (const watcher of this.watched.get(glance.job_id) ?? []) watcher.look(glance);
    }
  }
}

type Seen = Pick<JobGlance, "status" | "progress"> & { last_event_id: number };

const textOf = ({ last_event_id: id, status, progress }: Seen): string =>
  `${id} ${status} ${progress}`;

/** One follower of one job. */
export class JobWatcher {
  private moved = false;
  /** What was seen last, as one text; undefined: nothing. */
  private seen: string | undefined;
  private resolve: (() => void) | undefined;

  constructor(readonly close: () => void) {}

  readonly wake = (): void => {
    this.moved = true;
    this.resolve?.();
  };

  /** It has read this itself, and needs not be woken for it. */
  saw(seen: Seen): void {
    this.seen = textOf(seen);
  }

  /** Wakes it if the job is not as it was seen last. */
  look(now: Seen): void {
    const text = textOf(now);
    if (text === this.seen) return;
    this.seen = text;
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
