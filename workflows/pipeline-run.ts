import { condition, log } from "@temporalio/workflow";
import {
  type BegunStep,
  hasEnded,
  mayBegin,
  type PipelineEnd,
  type PipelineOrders,
  type PipelinePlan,
  type PipelineWorkflowInput,
  type PlannedStep,
  type StepEnd,
  type StepInput,
} from "../core/pipelines/workflow";
import { takes } from "./changes";
import { runChildJob } from "./child-job";
import { reliably } from "./reliably";

type BegunJob = BegunStep & { how: "job" };

/**
 * One run of a pipeline.
 *
 *   a step                         is begun when
 *   that needs nothing             at once
 *   that needs others              all of them have completed; of those that it chooses from, have ended
 *   that needs an approval         somebody has approved it, after that
 *
 * Once a step has failed that is not optional, or the pipeline is cancelled, no other is begun. Those under
 * way go to their end, or are cancelled with it.
 */
export class PipelineRun {
  private orders: PipelineOrders = { cancelled: false, decisions: {} };
  private isFailing = false;
  private isOver = false;
  private heard: number;
  private run: number | undefined;

  constructor(
    private readonly input: PipelineWorkflowInput,
    private readonly wakes: () => number,
  ) {
    this.heard = wakes();
  }

  async toItsEnd(): Promise<PipelineEnd> {
    const plan = await reliably((activities) => activities.openPipeline(this.input));
    if (!plan) return { status: "none" };
    this.run = plan.run;
    if (takes("planBringsOrders")) this.orders = plan.orders;
    this.isFailing = plan.steps.some((step) => step.status === "failed" && !step.optional);
    const listening = this.listen();
    const ends = new Map<string, Promise<StepEnd>>();
    for (const step of plan.steps) ends.set(step.name, this.runStep(plan, step, ends));
    await Promise.all(ends.values());
    this.isOver = true;
    await listening;
    const run = { ...this.input, run: plan.run };
    return await reliably((activities) => activities.closePipeline(run));
  }

  /** Reads what people have decided, whenever there may be something new. */
  private async listen(): Promise<void> {
    if (!takes("planBringsOrders")) await this.readOrders();
    for (;;) {
      await condition(() => this.isOver || this.wakes() > this.heard);
      if (this.isOver) return;
      await this.readOrders();
    }
  }

  private async readOrders(): Promise<void> {
    this.heard = this.wakes();
    this.orders = await reliably((activities) => activities.readOrders(this.input));
  }

  private get isStopping(): boolean {
    return this.isFailing || this.orders.cancelled || this.isSuperseded;
  }

  /** This run's end was written already, by a try of which Temporal never heard, and the next one has begun. */
  private get isSuperseded(): boolean {
    return this.orders.run !== undefined && this.orders.run !== this.run;
  }

  private async runStep(
    plan: PipelinePlan,
    step: PlannedStep,
    ends: Map<string, Promise<StepEnd>>,
  ): Promise<StepEnd> {
    const needed = new Map<string, StepEnd>();
    for (const name of step.needs) needed.set(name, (await ends.get(name)) ?? "skipped");
    // Of an earlier run, or of this one before its workflow was lost.
    if (hasEnded(step.status)) return step.status;
    const end = mayBegin(step, (name) => needed.get(name) ?? "skipped")
      ? await this.doStep(plan, step)
      : "skipped";
    // What is left out because of it shows in its own end.
    if (end !== "completed" && !step.optional) this.isFailing = true;
    return end;
  }

  private async doStep(plan: PipelinePlan, step: PlannedStep): Promise<StepEnd> {
    const of = { ...this.input, step: step.name, run: plan.run };
    if (this.isStopping) return "skipped";
    if (step.status !== "running" && step.needs_approval) {
      const approved = await this.awaitApproval(of);
      if (approved !== true) return approved === false ? "failed" : "skipped";
    }
    const begun = await reliably((activities) => activities.beginStep(of));
    if (begun.how === "ended") return begun.end;
    // The child writes the job's row. Where another looks after it, the step's end waits for it.
    if (begun.how === "job") await runChildJob(this.childOf(plan, begun));
    const end = await reliably((activities) => activities.endStep(of));
    log.info("step ended", { pipeline_id: of.pipelineId, step: step.name, end });
    return end;
  }

  /** Waits for somebody's word; undefined: there is nothing any more to approve. */
  private async awaitApproval(of: StepInput): Promise<boolean | undefined> {
    const decided = await reliably((activities) => activities.askApproval(of));
    if (decided !== null) return decided;
    const word = (): boolean | undefined =>
      Object.hasOwn(this.orders.decisions, of.step) ? this.orders.decisions[of.step] : undefined;
    await condition(() => word() !== undefined || this.isStopping);
    return word();
  }

  private childOf({ userId }: PipelinePlan, { jobId, maxAttempts, jobType }: BegunJob) {
    const { requestId } = this.input;
    return {
      input: { jobId, maxAttempts, requestId, fromStep: true as const },
      jobType,
      userId,
      summary: `${jobType} job of ${userId}`,
    };
  }
}
