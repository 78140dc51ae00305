import { tenantOfGroup } from "../../core/jobs/requirements";
import type { Context } from "../context";
import { LoopComponent } from "../loop-component";
import type { LongPolls } from "./long-polls";
import {
  FEW_GROUPS,
  hasTaker,
  isAnythingQueued,
  listAssigned,
  matchOnce,
  type Scope,
} from "./matching";
import { markProvisioning } from "./provisioning";

const SWEEP_MS = 2_000;
/** After submissions of more tenants, one pass over everything costs less than one for each tenant. */
const FEW_TENANTS = 5;

/** What changed since the last pass. */
class Changes {
  /** Anything else than the following: the next pass reads the whole queue. */
  isAny = false;
  /** Requirement groups with new jobs. */
  readonly groups = new Set<string>();
  /** Workers that became available. */
  readonly workers = new Set<string>();
  /** All requirement groups with jobs that any of these workers fits. */
  readonly wanted = new Set<string>();
}

/**
 * Assigns queued attempts to idle workers. The cost of a pass does not grow with queues that nothing changed in: after
 * a poll it assigns only to that worker. After a submission it does nothing if no idle worker fits the job, and
 * reads only the tenant's own jobs and workers if no shared worker fits. Otherwise, and in every sweep, it reads all
 * requirement groups, so that no tenant is passed over.
 */
export class Scheduler extends LoopComponent {
  private running: Promise<void> | undefined;
  private waiting: Promise<void> | undefined;
  private changes = new Changes();
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

  /** Jobs of this requirement group were queued; undefined: anything else changed. The sweep retries a failed pass. */
  private readonly onQueue = (group?: string): void => {
    if (group === undefined) this.changes.isAny = true;
    else this.changes.groups.add(group);
    this.wake().catch(() => undefined);
  };

  /**
   * Resolves after a pass that starts after this call.
   *
   * @param wanted all requirement groups with jobs that the worker fits.
   */
  async assignTo(workerId: string, wanted: string[]): Promise<void> {
    const { changes } = this;
    changes.workers.add(workerId);
    for (const group of wanted) changes.wanted.add(group);
    if (changes.wanted.size > FEW_GROUPS) changes.isAny = true;
    await this.wake();
  }

  /** Calls coalesce: one pass runs and at most one waits. */
  private wake(): Promise<void> {
    if (!this.running) return this.startPass();
    this.waiting ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.waiting = undefined;
        return this.wake();
      });
    return this.waiting;
  }

  private startPass(): Promise<void> {
    const { changes } = this;
    this.changes = new Changes();
    this.running = this.pass(changes)
      .catch((error: unknown) => {
        // The next pass makes up for this one.
        this.changes.isAny = true;
        throw error;
      })
      .finally(() => {
        this.running = undefined;
      });
    return this.running;
  }

  private readonly onAssigned = (workerIds: string[]): void => {
    this.longPolls.wake(workerIds);
  };

  private readonly onReconnected = (): void => {
    this.wakeAssigned().catch(() => undefined);
  };

  private async pass(changes: Changes): Promise<void> {
    const done = this.ctx.metrics.matchSeconds.startTimer();
    try {
      for (const scope of await this.scopesOf(changes)) {
        if (await this.match(scope)) continue;
        await this.match("");
        return;
      }
    } finally {
      done();
    }
  }

  private async scopesOf({ isAny, workers, wanted, ...queued }: Changes): Promise<Scope[]> {
    if (isAny) return [""];
    const groups = [...queued.groups];
    const tenants = [...new Set(groups.map(tenantOfGroup))];
    const isFew = tenants.length <= FEW_TENANTS;
    if (!isFew && (await hasTaker(this.ctx.pool, groups))) return [""];
    const scopes: Scope[] = (isFew ? tenants : []).map((tenant) => ({
      tenant,
      groups: groups.filter((group) => tenantOfGroup(group) === tenant),
    }));
    if (workers.size > 0) scopes.push({ workers: [...workers], groups: [...wanted] });
    return scopes;
  }

  /** Returns false if a pass over everything is needed instead. */
  private async match(scope: Scope): Promise<boolean> {
    const { rankedTenants } = this.ctx.config.fleet;
    for (let at = scope; ; ) {
      const pass = await matchOnce(this.ctx.pool, rankedTenants, at);
      if (pass.isShared) return false;
      if (pass.pairs.length === 0) {
        if (pass.wasBlocked) this.changes.isAny = true;
        if (pass.next === undefined) return true;
        at = pass.next;
        continue;
      }
      this.ctx.metrics.assigned.inc(pass.pairs.length);
      for (const { job_type, waited_s } of pass.firsts) {
        this.ctx.metrics.assignSeconds.observe({ job_type }, waited_s);
      }
      const elsewhere = this.longPolls.wake(pass.pairs.map((pair) => pair.worker_id));
      if (elsewhere.length > 0) this.ctx.signals.assigned(elsewhere);
      if (pass.sawAll) return true;
    }
  }

  protected async run(): Promise<void> {
    // Usually the queue is empty: then neither a pass nor markProvisioning has anything to do.
    const isQueued = await isAnythingQueued(this.ctx.pool);
    if (isQueued) {
      this.changes.isAny = true;
      await this.wake();
    }
    await this.wakeAssigned();
    if (isQueued) this.markAfter = await markProvisioning(this.ctx.pool, this.markAfter);
  }

  /** Makes up for missed signals: reads the assignments of all workers whose polls wait in this process. */
  private async wakeAssigned(): Promise<void> {
    const waiting = this.longPolls.workerIds;
    if (waiting.length > 0) this.longPolls.wake(await listAssigned(this.ctx.pool, waiting));
  }
}
