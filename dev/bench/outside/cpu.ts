import { totalCpuSeconds } from "../../stack/cpu-time";
import { processesIn } from "../../stack/process-table";
import { median } from "./rows";
import type { Forge, Stage } from "./stage";

/** Records the CPU time per job or workflow, by process, in each round of a measurement. */
export class CostNotes {
  private readonly costs = new Map<string, number[]>();

  constructor(
    private readonly stage: Stage,
    private readonly forge: Forge,
    private readonly perRound: number,
  ) {}

  /**
   * Runs one round and records its CPU time per job or workflow.
   * @param what the unit of work: "job" or "bare workflow". `run` must do `perRound` units.
   */
  async note<T>(what: string, run: () => Promise<T>): Promise<T> {
    const before = cpuOf(this.stage, this.forge);
    const result = await run();
    for (const [part, seconds] of Object.entries(cpuOf(this.stage, this.forge))) {
      const name = `CPU ms of ${part} per ${what}`;
      const ms = ((seconds - (before[part] ?? 0)) * 1000) / this.perRound;
      this.costs.set(name, [...(this.costs.get(name) ?? []), ms]);
    }
    return result;
  }

  /** Medians without the first round, which is the warm-up. */
  medians(): Record<string, number> {
    const entries = [...this.costs].map(([name, values]) => [name, median(values.slice(1))]);
    return Object.fromEntries(entries) as Record<string, number>;
  }
}

/** CPU time of the processes so far, in seconds. Linux only; empty elsewhere. */
export function cpuOf(stage: Stage, forge: Forge): Record<string, number> {
  if (process.platform !== "linux") return {};
  return {
    "forge-server": totalCpuSeconds(forge.pid),
    Temporal: totalCpuSeconds(stage.temporalPid),
    Postgres: processesIn(stage.postgresFolder).reduce((sum, pid) => sum + totalCpuSeconds(pid), 0),
    "the bare worker": totalCpuSeconds(stage.bareWorkerPid),
    "the load generator": totalCpuSeconds(stage.generator.pid),
  };
}
