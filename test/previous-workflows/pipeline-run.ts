import {
  defineSearchAttributeKey,
  SearchAttributeType,
  WorkflowExecutionAlreadyStartedError,
} from "@temporalio/common";
import { ChildWorkflowFailure, condition, log, startChild } from "@temporalio/workflow";
import { JOB_WORKFLOW, type JobWorkflowInput, SEARCH_ATTRIBUTES } from "../../core/jobs/workflow";
import {
  type BegunStep,
  mayBegin,
  type PipelineEnd,
  type PipelineOrders,
  type PipelinePlan,
  type PipelineWorkflowInput,
  type PlannedStep,
  type StepEnd,
} from "../../core/pipelines/workflow";
import { jobWorkflowId } from "../../core/workflow-ids";
import { localFirst } from "../../workflows/activity-proxies";

const jobTypeKey = defineSearchAttributeKey(SEARCH_ATTRIBUTES.jobType, SearchAttributeType.KEYWORD);
const userIdKey = defineSearchAttributeKey(SEARCH_ATTRIBUTES.userId, SearchAttributeType.KEYWORD);

/**
 * One run of a pipeline.
 *
 *   a step that                    begins when
 *   needs nothing                  the run begins
 *   needs other steps              all of them have completed
 *   chooses the best of several    these have ended, even if some have failed
 *   needs an approval              the step's other conditions hold, and then it is approved
 *
 * Once a required step has failed, or the pipeline is cancelled, no other step begins. Running
 * steps end normally, or are cancelled with the pipeline.
 */
export class PipelineRun {
  private orders: PipelineOrders = { cancelled: false, decisions: {} };
  private isFailing = false;
  private isOver = false;
  private seenWakes: number;

  constructor(
    private readonly input: PipelineWorkflowInput,
    private readonly wakes: () => number,
  ) {
    this.seenWakes = wakes();
  }

  async toItsEnd(): Promise<PipelineEnd> {
    const plan = await localFirst((activities) => activities.openPipeline(this.input));
    if (!plan) return { status: "none" };
    this.isFailing = plan.steps.some((step) => step.status === "failed" && !step.optional);
    const reading = this.readOrders();
    const ends = new Map<string, Promise<StepEnd | "skipped">>();
    for (const step of plan.steps) ends.set(step.name, this.runStep(plan, step, ends));
    await Promise.all(ends.values());
    this.isOver = true;
    await reading;
    return await localFirst((activities) => activities.closePipeline(this.input));
  }

  /** Reads approvals and cancels whenever a wake signal has arrived. */
  private async readOrders(): Promise<void> {
    do {
      this.seenWakes = this.wakes();
      this.orders = await localFirst((activities) => activities.readOrders(this.input));
      await condition(() => this.isOver || this.wakes() > this.seenWakes);
    } while (!this.isOver);
  }

  private get isStopping(): boolean {
    return this.isFailing || this.orders.cancelled;
  }

  private async runStep(
    plan: PipelinePlan,
    step: PlannedStep,
    ends: Map<string, Promise<StepEnd | "skipped">>,
  ): Promise<StepEnd | "skipped"> {
    const needed = new Map<string, StepEnd | "skipped">();
    for (const name of step.needs) needed.set(name, (await ends.get(name)) ?? "skipped");
    if (step.status === "completed") return "completed";
    const end = mayBegin(step, (name) => needed.get(name) ?? "skipped")
      ? await this.doStep(plan, step)
      : "skipped";
    // A skipped step also makes the run fail, unless the step is optional.
    if (end !== "completed" && !step.optional) this.isFailing = true;
    return end;
  }

  private async doStep(plan: PipelinePlan, step: PlannedStep): Promise<StepEnd | "skipped"> {
    const of = { ...this.input, step: step.name };
    if (this.isStopping) return "skipped";
    if (step.status !== "running" && step.needs_approval) {
      const approved = await this.awaitApproval(of);
      if (approved !== true) return approved === false ? "failed" : "skipped";
    }
    const begun = await localFirst((activities) => activities.beginStep(of));
    if (begun.how === "ended") return begun.end;
    if (begun.how === "job") await this.runJob(plan, begun);
    const end = await localFirst((activities) => activities.endStep(of));
    log.info("step ended", { pipeline_id: of.pipelineId, step: step.name, end });
    return end;
  }

  /** Waits for the decision about the step. Undefined: the run stops, so none is needed. */
  private async awaitApproval(
    of: PipelineWorkflowInput & { step: string },
  ): Promise<boolean | undefined> {
    const decided = await localFirst((activities) => activities.askApproval(of));
    if (decided !== null) return decided;
    const decision = (): boolean | undefined => this.orders.decisions[of.step];
    await condition(() => decision() !== undefined || this.isStopping);
    return decision();
  }

  /**
   * Runs the job as a child workflow, which writes the job's row. `endStep` reads the outcome from
   * the row, so it does not matter how the child closes. The child fails if the job fails. If the
   * child is terminated, the reconciler starts it again.
   */
  private async runJob(plan: PipelinePlan, begun: BegunStep & { how: "job" }): Promise<void> {
    const input: JobWorkflowInput = {
      jobId: begun.jobId,
      maxAttempts: begun.maxAttempts,
      requestId: this.input.requestId,
      fromStep: true,
    };
    try {
      const child = await startChild(JOB_WORKFLOW, {
        workflowId: jobWorkflowId(begun.jobId),
        args: [input],
        parentClosePolicy: "ABANDON",
        workflowIdReusePolicy: "REJECT_DUPLICATE",
        staticSummary: `${begun.jobType} job of ${plan.userId}`,
        typedSearchAttributes: [
          { key: jobTypeKey, value: begun.jobType },
          { key: userIdKey, value: plan.userId },
        ],
      });
      await child.result();
    } catch (error) {
      const hasClosed = error instanceof ChildWorkflowFailure;
      if (!hasClosed && !(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }
}
