import { Shared } from "../../platform/concurrency/shared";
import type { Cap } from "../../platform/config/limits";
import type { Queryable } from "../../platform/postgres/pool";
import { requireBelow } from "./quota-exceeded";
import { countQueuedByGroup } from "./quotas";

const STALE_MS = 1_000;
const MAX_TENANTS = 10_000;

interface Queued {
  byShape: Map<string, number>;
  jobs: number;
  readMs: number;
}

/**
 * How much each tenant has in the queue: read once a second while the tenant submits, and counted on
 * from there. So what other processes take within that second may pass a cap; a count for each
 * submission would cost as much as the submission.
 */
export class QueueQuota {
  private readonly queued = new Map<string, Queued>();
  private readonly reading = new Shared<void>();

  constructor(
    private readonly db: Queryable,
    private readonly caps: { queued_jobs: Cap; queued_shapes: Cap },
    private readonly nowMs: () => number,
  ) {}

  /** Brings what is known of a tenant up to date; before the transaction that adds a job. */
  async refresh(userId: string): Promise<void> {
    const known = this.queued.get(userId);
    if (known && this.nowMs() - known.readMs < STALE_MS) return;
    await this.reading.do(userId, () => this.read(userId));
  }

  /** Counts a job in. @throws 429 `quota_exceeded` when the tenant has as many as it may. */
  admit(userId: string, shape: string): void {
    const queued = this.queued.get(userId);
    if (!queued) return;
    requireBelow(this.caps.queued_jobs, queued.jobs);
    const same = queued.byShape.get(shape) ?? 0;
    if (same === 0) requireBelow(this.caps.queued_shapes, queued.byShape.size);
    queued.jobs += 1;
    queued.byShape.set(shape, same + 1);
  }

  private async read(userId: string): Promise<void> {
    const readMs = this.nowMs();
    const byShape = new Map(
      (await countQueuedByGroup(this.db, userId)).map(({ shape, jobs }) => [shape, jobs]),
    );
    const jobs = [...byShape.values()].reduce((sum, each) => sum + each, 0);
    if (this.queued.size >= MAX_TENANTS) this.forgetStale();
    this.queued.set(userId, { byShape, jobs, readMs });
  }

  private forgetStale(): void {
    for (const [userId, { readMs }] of this.queued) {
      if (this.nowMs() - readMs >= STALE_MS) this.queued.delete(userId);
    }
  }
}
