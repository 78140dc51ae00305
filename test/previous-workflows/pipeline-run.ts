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
import { reliably } from "../../workflows/reliably";

const jobTypeKey = defineSearchAttributeKey(SEARCH_ATTRIBUTES.jobType, SearchAttributeType.KEYWORD);
const userIdKey = defineSearchAttributeKey(SEARCH_ATTRIBUTES.userId, SearchAttributeType.KEYWORD);

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

  constructor(
    private readonly input: PipelineWorkflowInput,
    private readonly wakes: () => number,
  ) {
    this.heard = wakes();
  }

  async toItsEnd(): Promise<PipelineEnd> {
    const plan = await reliably((activities) => activities.openPipeline(this.input));
    if (!plan) return { status: "none" };
    this.isFailing = plan.steps.some((step) => step.status === "failed" && !step.optional);
    const listening = this.listen();
    const ends = new Map<string, Promise<StepEnd | "skipped">>();
    for (const step of plan.steps) ends.set(step.name, this.runStep(plan, step, ends));
    await Promise.all(ends.values());
    this.isOver = true;
    await listening;
    return await reliably((activities) => activities.closePipeline(this.input));
  }

  /** Reads what people have decided, whenever there may be something new. */
  private async listen(): Promise<void> {
    do {
      this.heard = this.wakes();
      this.orders = await reliably((activities) => activities.readOrders(this.input));
      await condition(() => this.isOver || this.wakes() > this.heard);
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
    // What is left out because of it shows in its own end.
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
    const begun = await reliably((activities) => activities.beginStep(of));
    if (begun.how === "ended") return begun.end;
    if (begun.how === "job") await this.runJob(plan, begun);
    const end = await reliably((activities) => activities.endStep(of));
    log.info("step ended", { pipeline_id: of.pipelineId, step: step.name, end });
    return end;
  }

  /** Waits for somebody's word; undefined: there is nothing any more to approve. */
  private async awaitApproval(
    of: PipelineWorkflowInput & { step: string },
  ): Promise<boolean | undefined> {
    const decided = await reliably((activities) => activities.askApproval(of));
    if (decided !== null) return decided;
    const word = (): boolean | undefined => this.orders.decisions[of.step];
    await condition(() => word() !== undefined || this.isStopping);
    return word();
  }

  /**
   * The job as a child, which writes its row. However that closes (a failed job's execution fails, a
   * terminated one is started again by the reconciler): how the job ended, its row tells.
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
