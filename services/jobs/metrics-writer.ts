import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { type MetricsReport, writeMetrics } from "./job-metrics";

/**
 * Keeps what running jobs report: the newest report of each is held in memory and written every few seconds, all
 * in one statement. No heartbeat waits for that.
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

  /** Of a worker that holds the attempt. */
  add(report: MetricsReport): void {
    this.newest.set(`${report.job_id}/${report.attempt}`, report);
  }

  private async write(): Promise<void> {
    const { newest } = this;
    // Before the write: if it fails, memory stays bounded.
    this.newest = new Map();
    if (newest.size > 0) await writeMetrics(this.ctx.pool, [...newest.values()]);
  }
}
