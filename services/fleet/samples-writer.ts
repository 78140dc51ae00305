import type { Context } from "../context";
import { LoopComponent } from "../loop-component";
import type { Heartbeat } from "./heartbeats";
import { type WorkerSample, writeSamples } from "./worker-samples";

type Metric = "util" | "mem_used" | "mem_total";

interface Sums {
  heartbeats: number;
  sums: Record<Metric, number>;
  /** For each metric, the number of heartbeats that have a value for it. */
  counts: Record<Metric, number>;
}

/**
 * Stores the utilization that workers report. Adds up heartbeats in memory and writes the means of
 * all workers in one statement a minute, so no heartbeat waits for the write. A crash loses the
 * heartbeats since the last write.
 */
export class SamplesWriter extends LoopComponent {
  private received = new Map<string, Sums>();

  constructor(ctx: Context) {
    super(ctx, "worker samples", ctx.config.fleet.sampleIntervalS * 1000);
  }

  /** Call only for a heartbeat that was recorded. */
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

  protected async run(): Promise<void> {
    const { received } = this;
    // Clear the map before the write: a failed write loses its samples, but memory stays bounded.
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
