import type { Context } from "../context";
import { LoopComponent } from "../loop-component";
import { type MetricsReport, writeMetrics } from "./job-metrics";

/**
 * Stores the metrics that running jobs report. Keeps each attempt's newest report in memory and
 * writes all of them in one statement every few seconds, so no heartbeat waits for the write.
 */
export class MetricsWriter extends LoopComponent {
  private newest = new Map<string, MetricsReport>();

  constructor(ctx: Context) {
    super(ctx, "job metrics", ctx.config.jobs.metricsIntervalS * 1000);
  }

  /** The caller has checked that the worker holds the attempt. */
  add(report: MetricsReport): void {
    this.newest.set(`${report.job_id}/${report.attempt}`, report);
  }

  protected async run(): Promise<void> {
    const { newest } = this;
    // Clear the map before the write: a failed write loses its reports, but memory stays bounded.
    this.newest = new Map();
    if (newest.size > 0) await writeMetrics(this.ctx.pool, [...newest.values()]);
  }
}
