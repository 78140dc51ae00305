import { ApplicationFailure } from "@temporalio/common";
import { ForgeError } from "../../core/errors";
import { dueOf } from "../../core/pipelines/due-work";
import { judgeRun } from "../../core/pipelines/run-end";
import { isOver, type PipelineStatus } from "../../core/pipelines/step";
import type {
  ApproveRequest,
  PipelineEnd,
  PipelineOrders,
  PipelinePlan,
  PipelineWorkflowInput,
  RunInput,
  StepInput,
} from "../../core/pipelines/workflow";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../../services/context";
import { cancelPipeline, cancelPipelineJobs } from "../../services/pipelines/cancel-pipeline";
import { decideStep } from "../../services/pipelines/decide-step";
import {
  findStep,
  listPlannedSteps,
  listSteps,
  type StepView,
} from "../../services/pipelines/pipeline-steps";
import {
  closeRun,
  findPipeline,
  isSuperseded,
  lockPipeline,
  type PipelineRow,
} from "../../services/pipelines/pipelines";
import { waitForApproval } from "../../services/pipelines/step-changes";
import { missingFromDatabase } from "../context";
import { haveNeededStepsEnded } from "./ready-step";

export function createPipelineActivities(ctx: Context) {
  return {
    /**
     * Returns the plan of the pipeline's current run: its steps and their states. Null if the
     * pipeline is over or does not exist. If no further step may begin, the plan contains only the
     * running steps, with empty `needs`.
     */
    async openPipeline({ pipelineId }: PipelineWorkflowInput): Promise<PipelinePlan | null> {
      const pipeline = await findPipeline(ctx.pool, pipelineId, null);
      if (!pipeline || isOver(pipeline.status)) return null;
      const steps = await listPlannedSteps(ctx.pool, pipelineId);
      const { isStopping } = dueOf(steps, pipeline.cancel_requested_at !== null);
      const left = isStopping ? steps.filter(({ status }) => status === "running") : steps;
      return {
        userId: pipeline.user_id,
        run: pipeline.run,
        steps: left.map((step) => ({
          name: step.name,
          job_type: step.job_type,
          needs: isStopping ? [] : step.needs,
          optional: step.optional,
          needs_approval: step.needs_approval,
          choosesFrom: step.choosesFrom,
          status: step.status,
        })),
        // Always false, even if the pipeline is cancelled. Its plan then has only running steps,
        // and the workflow must wait for their end. With `true`, the workflow would skip them.
        orders: { ...(await ordersOf(ctx, pipeline, steps)), cancelled: false },
      };
    },

    /** Reads whether the pipeline was cancelled, and which steps were approved or rejected. */
    async readOrders({ pipelineId }: PipelineWorkflowInput): Promise<PipelineOrders> {
      const pipeline = await findPipeline(ctx.pool, pipelineId, null);
      return await ordersOf(ctx, pipeline, await listSteps(ctx.pool, [pipelineId]));
    },

    /**
     * Sets a step to `waiting_approval`. Returns true if the step was approved, null if there is no
     * decision yet, and false if the step must not begin: it was rejected, or the run is over or is
     * not the current one. Idempotent.
     */
    async askApproval(of: StepInput): Promise<boolean | null> {
      const { pipelineId, step: name } = of;
      return await transaction(ctx.pool, async (db) => {
        const pipeline = await lockPipeline(db, pipelineId, null);
        if (!pipeline || isOver(pipeline.status) || isSuperseded(of, pipeline)) return false;
        if (!(await haveNeededStepsEnded(db, pipelineId, name)))
          throw missingFromDatabase(`what step "${name}" needs`);
        await waitForApproval(db, pipelineId, name);
        return (await findStep(db, pipelineId, name))?.approved ?? null;
      });
    },

    /** Stores a decision that arrived as a Temporal update. */
    async decideStep(
      of: RunInput & { request: ApproveRequest },
    ): Promise<{ step: string; approved: boolean }> {
      const { step, approved = true, by, note } = of.request;
      try {
        const decision = {
          approved,
          by: by === undefined ? "temporal" : `temporal:${by}`,
          note: note ?? null,
        };
        const decided = await decideStep(ctx, of.pipelineId, null, step, decision, { run: of.run });
        return { step: decided, approved };
      } catch (error) {
        if (!(error instanceof ForgeError)) throw error;
        throw ApplicationFailure.nonRetryable(error.message, error.code);
      }
    },

    /** Cancels the run as its user would. Idempotent. */
    async cancelPipeline({ pipelineId, run }: RunInput): Promise<void> {
      const answer = await cancelPipeline(ctx, pipelineId, null, "temporal", run);
      ctx.logger.info({ pipeline_id: pipelineId, answer }, "pipeline cancelled through Temporal");
    },

    /**
     * The final write of a run: decides from the database alone how the run ended. Returns
     * `superseded` in two cases: a later run has begun, or the run has not ended according to the
     * database. In the second case, the database has lost changes that the workflow has read.
     * Idempotent.
     */
    async closePipeline(input: RunInput): Promise<PipelineEnd> {
      const { pipelineId } = input;
      return await transaction(ctx.pool, async (db): Promise<PipelineEnd> => {
        const pipeline = await lockPipeline(db, pipelineId, null);
        if (!pipeline) return { status: "none" };
        if (isSuperseded(input, pipeline)) return { status: "superseded" };
        if (isOver(pipeline.status)) return endOf(pipeline.status, pipeline.error_code);
        const isCancelled = pipeline.cancel_requested_at !== null;
        const end = judgeRun(await listPlannedSteps(db, pipelineId), isCancelled);
        if (!end) return { status: "superseded" };
        await closeRun(db, pipelineId, end);
        ctx.logger.info({ pipeline_id: pipelineId, ...end }, "pipeline ended");
        return endOf(end.status, end.errorCode);
      });
    },
  };
}

/**
 * Returns whether a pipeline was cancelled, and which of its steps were approved or rejected. Also
 * cancels the jobs of a cancelled pipeline: the process that accepted the cancel may have died
 * before it had cancelled all of them.
 */
async function ordersOf(
  ctx: Context,
  pipeline: PipelineRow | undefined,
  steps: StepView[],
): Promise<PipelineOrders> {
  const isCancelling = pipeline?.cancel_requested_at != null && !isOver(pipeline.status);
  if (isCancelling) await cancelPipelineJobs(ctx, pipeline.pipeline_id, "pipeline");
  const decided = steps.flatMap(({ name, approved }) =>
    approved === null ? [] : [[name, approved] as const],
  );
  return {
    ...(pipeline && { run: pipeline.run }),
    // Also true if the run has ended in any other way: no further step may begin. A workflow can
    // read this after the end, because Temporal repeats a workflow task that fails after
    // `closePipeline`.
    cancelled: isCancelling || (pipeline !== undefined && isOver(pipeline.status)),
    decisions: Object.fromEntries(decided),
  };
}

function endOf(status: PipelineStatus, code: string | null): PipelineEnd {
  if (status === "failed") return { status, code: code ?? "step_failed" };
  return { status: status === "cancelled" ? "cancelled" : "completed" };
}
