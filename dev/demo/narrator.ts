import type { Job } from "../api-client";
import type { Say } from "../stack/say";
import type { Pipeline, Step } from "./api";

const clock = (): string => new Date().toISOString().slice(11, 19);

/** Says what changes in a pipeline, step by step, and now and then how far a job is. */
export class Narrator {
  private readonly told = new Map<string, string>();
  private readonly shown = new Map<string, number>();

  constructor(private readonly say: Say) {}

  tell(pipeline: Pipeline): void {
    for (const step of pipeline.steps) this.tellStep(step);
  }

  private tellStep(step: Step): void {
    const line = describe(step);
    if (line !== undefined && this.told.get(step.name) !== line) {
      this.say(`  ${clock()}  ${step.name.padEnd(9)} ${line}`);
      this.told.set(step.name, line);
    }
    const tenths = Math.floor((step.progress ?? 0) * 4) / 4;
    if (step.job_status === "running" && tenths > (this.shown.get(step.name) ?? 0)) {
      this.shown.set(step.name, tenths);
      if (tenths < 1) this.say(`  ${clock()}  ${step.name.padEnd(9)} ${tenths * 100} % done`);
    }
  }
}

function describe(step: Step): string | undefined {
  switch (step.status) {
    case "pending":
      return undefined;
    case "waiting_approval":
      return "waits for an approval";
    case "running":
      return describeJob(step);
    case "completed": {
      const gate = step.gate ? `, gate ${step.gate.condition} is open` : "";
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
      return attempts ? "its worker is lost; back in the queue" : "queued";
    default:
      return undefined;
  }
}

export const isOver = ({ status }: Pick<Pipeline | Job, "status">): boolean =>
  ["completed", "failed", "cancelled"].includes(status);
