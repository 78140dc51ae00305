import type { Context } from "../context";
import { LoopComponent } from "../loop-component";
import type { LongPolls } from "./long-polls";
import { FEW_GROUPS, isAnythingQueued, listAssigned, matchOnce } from "./matching";
import { markProvisioning } from "./provisioning";

const SWEEP_MS = 2_000;

/** The requirement groups of one pass; undefined for all. */
type Groups = ReadonlySet<string> | undefined;

const NONE: Groups = new Set();

/**
 * Assigns queued attempts to idle workers. A pass reads only the requirement groups in which something changed, so
 * its cost does not grow with other tenants' queues. The sweep reads all groups.
 */
export class Scheduler extends LoopComponent {
  private running: Promise<void> | undefined;
  private waiting: Promise<void> | undefined;
  /** What the next pass reads. */
  private wanted: Groups = NONE;
  /** The requirement group after which the next sweep continues `markProvisioning`. */
  private markAfter = "";

  constructor(
    ctx: Context,
    private readonly longPolls: LongPolls,
  ) {
    super(ctx, "scheduler", SWEEP_MS);
  }

  override start(): void {
    this.ctx.signals.on("queue", this.onQueue);
    this.ctx.signals.on("assigned", this.onAssigned);
    this.ctx.signals.on("reconnected", this.onReconnected);
    super.start();
  }

  override async stop(): Promise<void> {
    this.ctx.signals.off("queue", this.onQueue);
    this.ctx.signals.off("assigned", this.onAssigned);
    this.ctx.signals.off("reconnected", this.onReconnected);
    await super.stop();
    await Promise.allSettled([this.running, this.waiting]);
  }

  /**
   * Resolves after a pass that starts after this call. Calls coalesce: one pass runs and at most one waits.
   *
   * @param groups the requirement groups that it reads; undefined for all.
   */
  wake(groups?: string[]): Promise<void> {
    this.wanted = union(this.wanted, groups);
    if (!this.running) return this.startPass();
    this.waiting ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.waiting = undefined;
        return this.wake([]);
      });
    return this.waiting;
  }

  private startPass(): Promise<void> {
    const { wanted } = this;
    this.wanted = NONE;
    this.running = this.pass(wanted).finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private readonly onQueue = (groups?: string[]): void => {
    // The sweep retries a failed pass.
    this.wake(groups).catch(() => undefined);
  };

  private readonly onAssigned = (workerIds: string[]): void => {
    this.longPolls.wake(workerIds);
  };

  private readonly onReconnected = (): void => {
    this.wakeAssigned().catch(() => undefined);
  };

  private async pass(groups: Groups): Promise<void> {
    const done = this.ctx.metrics.matchSeconds.startTimer();
    try {
      await this.match(groups);
    } finally {
      done();
    }
  }

  private async match(groups: Groups): Promise<void> {
    const { rankedTenants } = this.ctx.config.fleet;
    for (let after = ""; ; ) {
      const read = groups ? [...groups] : after;
      const { pairs, next, sawAll } = await matchOnce(this.ctx.pool, rankedTenants, read);
      if (pairs.length === 0) {
        if (next === undefined) return;
        after = next;
        continue;
      }
      this.ctx.metrics.assigned.inc(pairs.length);
      const elsewhere = this.longPolls.wake(pairs.map((pair) => pair.worker_id));
      if (elsewhere.length > 0) this.ctx.signals.assigned(elsewhere);
      if (sawAll) return;
    }
  }

  protected async run(): Promise<void> {
    // Usually the queue is empty: then neither a pass nor markProvisioning has anything to do.
    const isQueued = await isAnythingQueued(this.ctx.pool);
    if (isQueued) await this.wake();
    await this.wakeAssigned();
    if (isQueued) this.markAfter = await markProvisioning(this.ctx.pool, this.markAfter);
  }

  /** Makes up for missed signals: reads the assignments of all workers whose polls wait in this process. */
  private async wakeAssigned(): Promise<void> {
    const waiting = this.longPolls.workerIds;
    if (waiting.length > 0) this.longPolls.wake(await listAssigned(this.ctx.pool, waiting));
  }
}

function union(some: Groups, more: string[] | undefined): Groups {
  if (!some || !more) return undefined;
  const all = new Set([...some, ...more]);
  return all.size > FEW_GROUPS ? undefined : all;
}
