import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { type MetricsReport, writeMetrics } from "./job-metrics";

/**
 * Stores the metrics that running jobs report. Keeps the newest report of each attempt in memory and writes all of
 * them in one statement every few seconds, so no heartbeat waits for the write.
 */
export class JobMetrics implements Component {
  readonly name = "job metrics";
  private newest = new Map<string, MetricsReport>();
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    const { metricsIntervalS } = ctx.config.jobs;
    this.loop = new Loop("job metrics", metricsIntervalS * 1000, () => this.write(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  /** The caller has checked that the worker holds the attempt. */
  add(report: MetricsReport): void {
    this.newest.set(`${report.job_id}/${report.attempt}`, report);
  }

  private async write(): Promise<void> {
    const { newest } = this;
    // Cleared before the write, so that memory stays bounded if the write fails.
    this.newest = new Map();
    if (newest.size > 0) await writeMetrics(this.ctx.pool, [...newest.values()]);
  }
}
