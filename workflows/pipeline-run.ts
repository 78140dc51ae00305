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
import { localFirst } from "./activity-proxies";
import { runChildJob } from "./child-job";
import { isPatched } from "./patches";

type BegunJob = BegunStep & { how: "job" };

/**
 * One run of a pipeline.
 *
 *   a step that                    begins
 *   needs nothing                  at once
 *   needs other steps              when they have completed
 *   chooses the best of several    when these have ended, even if some have failed
 *   needs an approval              as above, but only after it has been approved
 *
 * After a required step has failed, or the pipeline was cancelled, no further step begins. Running
 * steps continue to their end, or are cancelled with the pipeline.
 */
export class PipelineRun {
  private orders: PipelineOrders = { cancelled: false, decisions: {} };
  private isFailing = false;
  private isOver = false;
  private wakesSeen: number;
  /** Undefined until the plan is read. */
  run: number | undefined;

  constructor(
    private readonly input: PipelineWorkflowInput,
    private readonly wakes: () => number,
  ) {
    this.wakesSeen = wakes();
  }

  async execute(): Promise<PipelineEnd> {
    const plan = await localFirst((activities) => activities.openPipeline(this.input));
    if (!plan) return { status: "none" };
    this.run = plan.run;
    if (isPatched("planBringsOrders")) this.orders = plan.orders;
    this.isFailing = plan.steps.some((step) => step.status === "failed" && !step.optional);
    const watching = this.watchOrders();
    const ends = new Map<string, Promise<StepEnd>>();
    for (const step of plan.steps) ends.set(step.name, this.runStep(plan, step, ends));
    await Promise.all(ends.values());
    this.isOver = true;
    await watching;
    const run = { ...this.input, run: plan.run };
    return await localFirst((activities) => activities.closePipeline(run));
  }

  /** Reads the orders (cancellation, approvals) again after each wake signal. */
  private async watchOrders(): Promise<void> {
    if (!isPatched("planBringsOrders")) await this.readOrders();
    for (;;) {
      await condition(() => this.isOver || this.wakes() > this.wakesSeen);
      if (this.isOver) return;
      await this.readOrders();
    }
  }

  private async readOrders(): Promise<void> {
    this.wakesSeen = this.wakes();
    this.orders = await localFirst((activities) => activities.readOrders(this.input));
  }

  private get isStopping(): boolean {
    return this.isFailing || this.orders.cancelled || this.isSuperseded;
  }

  /**
   * True if a later run of the pipeline has begun. This happens if an activity wrote this run's end
   * to Postgres, but the activity's result did not reach Temporal. The pipeline could then be
   * resumed, while this workflow continues with the old run.
   */
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
    // The step has already ended: in an earlier run of the pipeline, or in an earlier execution of
    // the workflow that worked on this run.
    if (hasEnded(step.status)) return step.status;
    const end = mayBegin(step, (name) => needed.get(name) ?? "skipped")
      ? await this.executeStep(plan, step)
      : "skipped";
    // A required step that does not complete fails the run, even if the step was only skipped.
    if (end !== "completed" && !step.optional) this.isFailing = true;
    return end;
  }

  private async executeStep(plan: PipelinePlan, step: PlannedStep): Promise<StepEnd> {
    const of = { ...this.input, step: step.name, run: plan.run };
    if (this.isStopping) return "skipped";
    if (step.status !== "running" && step.needs_approval) {
      const approved = await this.awaitApproval(of);
      if (approved !== true) return approved === false ? "failed" : "skipped";
    }
    const begun = await localFirst((activities) => activities.beginStep(of));
    if (begun.how === "ended") return begun.end;
    // The child workflow inserts the job. If another caller has already started that workflow,
    // runChildJob returns at once, and endStep waits for the job's end.
    if (begun.how === "job") await runChildJob(this.childOf(plan, begun));
    const end = await localFirst((activities) => activities.endStep(of));
    log.info("step ended", { pipeline_id: of.pipelineId, step: step.name, end });
    return end;
  }

  /** Waits without a time limit for an approval or rejection; undefined if the run stops first. */
  private async awaitApproval(of: StepInput): Promise<boolean | undefined> {
    const decided = await localFirst((activities) => activities.askApproval(of));
    if (decided !== null) return decided;
    const decision = (): boolean | undefined =>
      Object.hasOwn(this.orders.decisions, of.step) ? this.orders.decisions[of.step] : undefined;
    await condition(() => decision() !== undefined || this.isStopping);
    return decision();
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
