import { tenantOfGroup } from "../../core/jobs/requirements";
import type { Context } from "../context";
import { stopAvoiding } from "../jobs/avoided-workers";
import { LoopComponent } from "../loop-component";
import { announceAssigned } from "./announce-assigned";
import { assignOnlyJob } from "./assign-only-job";
import {
  assignOnce,
  FEW_GROUPS,
  hasFittingWorker,
  isAnythingQueued,
  listHolding,
  type OneTenant,
  type Pass,
  type Scope,
} from "./assignment";
import { markProvisioning } from "./provisioning";

const SWEEP_MS = 2_000;
/**
 * Up to this many tenants with new jobs get a pass each. For more tenants, one pass over all groups
 * is cheaper.
 */
const FEW_TENANTS = 5;
/**
 * The maximum number of tries of a pass. Without this limit, a row that can never be assigned would
 * make the pass repeat for ever.
 */
const MAX_TRIES = 3;

/** What changed since the last pass. */
class Changes {
  /** Something changed that the sets below do not describe: the next pass reads the whole queue. */
  isAny = false;
  /** Requirement groups with new jobs. */
  readonly groups = new Set<string>();
  /** Workers that became available. */
  readonly workers = new Set<string>();
  /** All requirement groups with jobs that at least one of `workers` could run. */
  readonly wanted = new Set<string>();
}

/**
 * Assigns queued attempts to idle workers. A pass reads only what a change affects, so its cost
 * does not grow with the length of the queue:
 * - A worker has polled: the pass assigns only to this worker.
 * - A tenant has submitted jobs, and only its own workers fit: the pass reads only this tenant's
 *   jobs and workers. If the tenant has just one queued job, no pass is needed
 *   (assign-only-job.ts).
 * - A tenant has submitted jobs, and no idle worker fits: there is no pass.
 * - In all other cases, and in every sweep (each SWEEP_MS), the pass reads all requirement groups,
 *   so that no tenant is passed over.
 */
export class Scheduler extends LoopComponent {
  private running: Promise<void> | undefined;
  private waiting: Promise<void> | undefined;
  private changes = new Changes();
  /** The requirement group after which the next sweep continues `markProvisioning`. */
  private markAfter = "";
  /** The requirement group after which the next round of passes begins (`assignRound`). */
  private beginAfter = "";

  constructor(ctx: Context) {
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
   * Handles a change. If jobs were queued, `group` is their requirement group. If anything else
   * changed, `group` is undefined. Ignores the error of a failed pass, because the next sweep runs
   * a pass again.
   */
  private readonly onQueue = (group?: string): void => {
    if (group === undefined) this.changes.isAny = true;
    else this.changes.groups.add(group);
    this.wake().catch(() => undefined);
  };

  /**
   * Assigns a fitting job, if there is one, to a worker that has become available. Resolves after a
   * pass that starts after this call.
   *
   * @param wanted all requirement groups with jobs that the worker could run; null if unknown.
   */
  async assignTo(workerId: string, wanted: string[] | null): Promise<void> {
    const { changes } = this;
    changes.workers.add(workerId);
    for (const group of wanted ?? []) changes.wanted.add(group);
    if (wanted === null || changes.wanted.size > FEW_GROUPS) changes.isAny = true;
    await this.wake();
  }

  /** Merges concurrent calls: one pass runs, and at most one more waits. */
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
        // This pass failed, so its changes are still unread: let the next pass read everything.
        this.changes.isAny = true;
        throw error;
      })
      .finally(() => {
        this.running = undefined;
      });
    return this.running;
  }

  private readonly onAssigned = (workerIds: string[]): void => {
    this.ctx.longPolls.wake(workerIds);
  };

  private readonly onReconnected = (): void => {
    this.wakeAssigned().catch(() => undefined);
  };

  private async pass(changes: Changes): Promise<void> {
    const done = this.ctx.metrics.matchSeconds.startTimer();
    try {
      for (const scope of await this.scopesOf(changes)) {
        if (typeof scope === "object" && (await this.assignPart(scope))) continue;
        while (await this.assignRound());
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
    if (!isFew && (await hasFittingWorker(this.ctx.pool, groups))) return [""];
    const scopes: Scope[] = (isFew ? tenants : []).map((tenant) => ({
      tenant,
      groups: groups.filter((group) => tenantOfGroup(group) === tenant),
    }));
    if (workers.size > 0) scopes.push({ workers: [...workers], groups: [...wanted] });
    return scopes;
  }

  /**
   * Runs passes over the workers and requirement groups of `scope` only. Returns false if the
   * caller must run passes over all requirement groups instead.
   */
  private async assignPart(scope: Exclude<Scope, string>): Promise<boolean> {
    const needed = "tenant" in scope ? await this.assignWithoutPass(scope) : "one pass";
    if (needed !== "one pass") return needed === "no pass";
    for (;;) {
      const { pairs, next, isExhaustive, sharedWorkerFits } = await this.assignOnce(scope);
      if (sharedWorkerFits) return false;
      if (pairs.length === 0 || isExhaustive) return next === undefined;
    }
  }

  /**
   * Assigns the tenant's queued job if the tenant has just one. Returns which passes are still
   * needed.
   */
  private async assignWithoutPass({
    tenant,
    groups,
  }: OneTenant): Promise<"no pass" | "one pass" | "passes over all"> {
    const { pool, longPolls } = this.ctx;
    const found = await longPolls.reserve(tenant, async (polls) => {
      const result = await assignOnlyJob(pool, tenant, groups, polls);
      if (result.assigned) announceAssigned(this.ctx, [result.assigned], result.started);
      return result;
    });
    if (found.sharedWorkerFits) return "passes over all";
    return found.assigned || !found.ownWorkerFits ? "no pass" : "one pass";
  }

  /**
   * Runs a round of passes that together read all requirement groups. The round begins after the
   * group `beginAfter`. After the last group, it continues with the first group.
   *
   * The first pass that assigns a job sets `beginAfter` to the last group that it read, so the next
   * round begins after that group. If every round began at the first group, workers that become
   * available one by one would only get jobs of the first groups.
   *
   * @returns whether another round may assign more.
   */
  private async assignRound(): Promise<boolean> {
    const begin = this.beginAfter;
    let hasAssigned = false;
    let isMore = false;
    let isSecondPart = begin === "";
    for (let at = begin; ; ) {
      const { pairs, next, isExhaustive } = await this.assignOnce(at);
      if (pairs.length > 0) {
        if (!hasAssigned) this.beginAfter = next ?? "";
        hasAssigned = true;
        if (!isExhaustive) isMore = true;
      }
      if (next !== undefined && !(isSecondPart && begin !== "" && next >= begin)) {
        at = next;
        continue;
      }
      if (isSecondPart) return isMore;
      isSecondPart = true;
      at = "";
    }
  }

  /**
   * Runs a pass. The pass may assign nothing because other transactions, such as a pass of another
   * process, have locked or changed the chosen rows. This method then repeats the pass, up to
   * MAX_TRIES tries in all.
   */
  private async assignOnce(scope: Scope): Promise<Pass> {
    const { rankedTenants } = this.ctx.config.fleet;
    for (let tried = 1; ; tried++) {
      const pass = await assignOnce(this.ctx.pool, rankedTenants, scope);
      const isBlockedEntirely = pass.wasBlocked && pass.pairs.length === 0;
      if (isBlockedEntirely && tried < MAX_TRIES) continue;
      if (isBlockedEntirely) this.changes.isAny = true;
      announceAssigned(this.ctx, pass.pairs);
      return pass;
    }
  }

  protected async run(): Promise<void> {
    // Usually the queue is empty: then neither a pass nor markProvisioning has anything to do.
    const isQueued = await isAnythingQueued(this.ctx.pool);
    if (isQueued) {
      await stopAvoiding(this.ctx.pool);
      this.changes.isAny = true;
      await this.wake();
    }
    await this.wakeAssigned();
    if (isQueued) this.markAfter = await markProvisioning(this.ctx.pool, this.markAfter);
  }

  /**
   * Wakes those polls of this process whose workers have an assignment. Makes up for missed
   * signals.
   */
  private async wakeAssigned(): Promise<void> {
    const { pool, longPolls } = this.ctx;
    const waiting = longPolls.workerIds;
    if (waiting.length > 0) longPolls.wake(await listHolding(pool, waiting));
  }
}
