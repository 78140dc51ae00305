import { SingleFlight } from "../../platform/concurrency/single-flight";
import type { Cap } from "../../platform/config/limits";
import type { Queryable } from "../../platform/postgres/pool";
import { requireBelow } from "./quota-exceeded";
import { countQueuedByGroup } from "./quotas";

const STALE_MS = 1_000;
const MAX_TENANTS = 10_000;

interface QueuedJobs {
  byGroup: Map<string, number>;
  jobs: number;
  readMs: number;
}

/**
 * Limits the number of jobs that each tenant has in the queue.
 *
 * A database count for each submission would cost as much as the submission itself. So each process
 * reads a tenant's count at most once a second, and adds its own submissions in memory. It does not
 * see what other processes add within that second, so a tenant can exceed a cap.
 */
export class QueueQuota {
  private readonly queued = new Map<string, QueuedJobs>();
  private readonly reading = new SingleFlight<void>();

  constructor(
    private readonly db: Queryable,
    private readonly caps: { queued_jobs: Cap; queued_shapes: Cap },
    private readonly nowMs: () => number,
  ) {}

  /**
   * Reads a tenant's count again if it is stale. Call it before the transaction that adds a job.
   */
  async refresh(userId: string): Promise<void> {
    const known = this.queued.get(userId);
    if (known && this.nowMs() - known.readMs < STALE_MS) return;
    await this.reading.do(userId, () => this.read(userId));
  }

  /** Adds a job to the count. @throws 429 `quota_exceeded` if the tenant has reached a cap. */
  admit(userId: string, group: string): void {
    const queued = this.queued.get(userId);
    if (!queued) return;
    requireBelow(this.caps.queued_jobs, queued.jobs);
    const same = queued.byGroup.get(group) ?? 0;
    if (same === 0) requireBelow(this.caps.queued_shapes, queued.byGroup.size);
    queued.jobs += 1;
    queued.byGroup.set(group, same + 1);
  }

  private async read(userId: string): Promise<void> {
    const readMs = this.nowMs();
    const byGroup = await countQueuedByGroup(this.db, userId);
    const jobs = [...byGroup.values()].reduce((sum, each) => sum + each, 0);
    if (this.queued.size >= MAX_TENANTS) this.forgetStale();
    this.queued.set(userId, { byGroup, jobs, readMs });
  }

  private forgetStale(): void {
    for (const [userId, { readMs }] of this.queued) {
      if (this.nowMs() - readMs >= STALE_MS) this.queued.delete(userId);
    }
  }
}
