import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import type { Heartbeat } from "./heartbeats";
import { type WorkerSample, writeSamples } from "./worker-samples";

type Metric = "util" | "mem_used" | "mem_total";

interface Sums {
  heartbeats: number;
  sums: Record<Metric, number>;
  /** Heartbeats that had a value. */
  counts: Record<Metric, number>;
}

/**
 * Keeps what workers report over time: heartbeats are added up in memory, and their means are written once a
 * minute, in one statement for all workers. No heartbeat waits for that, and what a crash loses is a minute.
 */
export class WorkerSamples implements Component {
  readonly name = "worker samples";
  private received = new Map<string, Sums>();
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    const { sampleIntervalS } = ctx.config.fleet;
    this.loop = new Loop("worker samples", sampleIntervalS * 1000, () => this.write(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  /** Of a worker whose heartbeat was recorded. */
  add({ workerId, util, memUsed, memTotal }: Heartbeat): void {
    const known = this.received.get(workerId) ?? emptySums();
    this.received.set(workerId, known);
    known.heartbeats += 1;
    const given = { util, mem_used: memUsed, mem_total: memTotal };
    for (const [metric, value] of Object.entries(given) as [Metric, number | null][]) {
      if (value === null) continue;
      known.sums[metric] += value;
      known.counts[metric] += 1;
    }
  }

  private async write(): Promise<void> {
    const { received } = this;
    // Before the write: if it fails, a minute is lost, and memory stays bounded.
    this.received = new Map();
    const samples = [...received].map(([workerId, sums]) => sampleOf(workerId, sums));
    if (samples.length > 0) await writeSamples(this.ctx.pool, samples);
  }
}

const emptySums = (): Sums => ({
  heartbeats: 0,
  sums: { util: 0, mem_used: 0, mem_total: 0 },
  counts: { util: 0, mem_used: 0, mem_total: 0 },
});

function sampleOf(workerId: string, { heartbeats, sums, counts }: Sums): WorkerSample {
  const mean = (metric: Metric): number | null =>
    counts[metric] > 0 ? sums[metric] / counts[metric] : null;
  return {
    worker_id: workerId,
    heartbeats,
    util: mean("util"),
    mem_used: mean("mem_used"),
    mem_total: mean("mem_total"),
  };
}
