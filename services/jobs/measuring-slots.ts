/**
 * Limits how many jobs' artifacts are measured (sizes, checksums, rows) at once in this process.
 * Each measurement holds an activity slot, possibly for hours, and the activities of other jobs
 * need slots, too. `perTenant` limits the measurements of each tenant, and `total` those of all
 * tenants together. If `total` measurements are running, only a tenant that has none running may
 * start one, up to `totalWithFirst` in all. So busy tenants don't keep other tenants waiting.
 */
export class MeasuringSlots {
  private readonly running = new Map<string, number>();
  private total = 0;

  constructor(
    private readonly limits: { perTenant: number; total: number; totalWithFirst: number },
  ) {}

  /** Runs `work` at once. If no slot is free, returns undefined and does not run it. */
  async run<Result>(tenant: string, work: () => Promise<Result>): Promise<Result | undefined> {
    const own = this.running.get(tenant) ?? 0;
    const { perTenant, total, totalWithFirst } = this.limits;
    if (own >= perTenant || this.total >= (own === 0 ? totalWithFirst : total)) return undefined;
    this.add(tenant, 1);
    try {
      return await work();
    } finally {
      this.add(tenant, -1);
    }
  }

  private add(tenant: string, by: 1 | -1): void {
    const own = (this.running.get(tenant) ?? 0) + by;
    if (own === 0) this.running.delete(tenant);
    else this.running.set(tenant, own);
    this.total += by;
  }
}
