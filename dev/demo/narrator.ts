import type { Job } from "../api-client";
import type { Say } from "../stack/say";
import type { Pipeline, Step } from "./api";

const clock = (): string => new Date().toISOString().slice(11, 19);

/** Prints each change of a pipeline's steps, and a job's progress at every quarter. */
export class Narrator {
  private readonly lines = new Map<string, string>();
  private readonly quarters = new Map<string, number>();

  constructor(private readonly say: Say) {}

  report(pipeline: Pipeline): void {
    for (const step of pipeline.steps) this.reportStep(step);
  }

  private reportStep(step: Step): void {
    const line = describe(step);
    if (line !== undefined && this.lines.get(step.name) !== line) {
      this.say(`  ${clock()}  ${step.name.padEnd(9)} ${line}`);
      this.lines.set(step.name, line);
    }
    const progress = Math.floor((step.progress ?? 0) * 4) / 4;
    if (step.job_status === "running" && progress > (this.quarters.get(step.name) ?? 0)) {
      this.quarters.set(step.name, progress);
      if (progress < 1) this.say(`  ${clock()}  ${step.name.padEnd(9)} ${progress * 100} % done`);
    }
  }
}

function describe(step: Step): string | undefined {
  switch (step.status) {
    case "pending":
      return undefined;
    case "waiting_approval":
      return "waiting for approval";
    case "running":
      return describeJob(step);
    case "completed": {
      const gate = step.gate ? `, gate ${step.gate.condition} passed` : "";
      return `completed${gate}`;
    }
    default:
      return `${step.status}: ${step.error}`;
  }
}

function describeJob({ job_status, worker_id, attempts }: Step): string | undefined {
  switch (job_status) {
    case "running":
      return `running on ${worker_id}, attempt ${attempts}`;
    case "pending":
      return attempts ? "worker lost; queued again" : "queued";
    default:
      return undefined;
  }
}

export const isOver = ({ status }: Pick<Pipeline | Job, "status">): boolean =>
  ["completed", "failed", "cancelled"].includes(status);
