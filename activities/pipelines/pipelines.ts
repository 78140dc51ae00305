import { ApplicationFailure } from "@temporalio/common";
import { ForgeError } from "../../core/errors";
import { isOver, type PipelineStatus } from "../../core/pipelines/step";
import type {
  ApproveRequest,
  PipelineEnd,
  PipelineOrders,
  PipelinePlan,
  PipelineWorkflowInput,
  StepInput,
} from "../../core/pipelines/workflow";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../../services/context";
import { cancelItsJobs, cancelPipeline } from "../../services/pipelines/cancel-pipeline";
import { decideStep } from "../../services/pipelines/decide-step";
import {
  choosesFrom,
  findStep,
  listSteps,
  type StepView,
} from "../../services/pipelines/pipeline-steps";
import {
  closeRun,
  findPipeline,
  lockPipeline,
  type PipelineRow,
} from "../../services/pipelines/pipelines";
import { waitForApproval } from "../../services/pipelines/step-changes";
import { gone } from "../context";
import { mayGoOnTo } from "./ready-step";

export function createPipelineActivities(ctx: Context) {
  return {
    /** The pipeline's steps as they stand; null when it is over, so that there is nothing to do. */
    async openPipeline({ pipelineId }: PipelineWorkflowInput): Promise<PipelinePlan | null> {
      const pipeline = await findPipeline(ctx.pool, pipelineId, null);
      if (!pipeline || isOver(pipeline.status)) return null;
      const steps = await listSteps(ctx.pool, [pipelineId]);
      return {
        userId: pipeline.user_id,
        run: pipeline.run,
        steps: steps.map((step) => ({
          name: step.name,
          job_type: step.job_type,
          needs: step.needs,
          optional: step.optional,
          needs_approval: step.needs_approval,
          choosesFrom: choosesFrom(step),
          status: step.status,
        })),
        orders: await ordersOf(ctx, pipeline, steps),
      };
    },

    /** What people have asked for since. */
    async readOrders({ pipelineId }: PipelineWorkflowInput): Promise<PipelineOrders> {
      const pipeline = await findPipeline(ctx.pool, pipelineId, null);
      return await ordersOf(ctx, pipeline, await listSteps(ctx.pool, [pipelineId]));
    },

    /**
     * A step waits for an approval from now on; answers the word on it, if there is one, and no for one
     * of a run that is over. Idempotent.
     */
    async askApproval({ pipelineId, step: name, run }: StepInput): Promise<boolean | null> {
      return await transaction(ctx.pool, async (db) => {
        const pipeline = await lockPipeline(db, pipelineId, null);
        if (!pipeline || isOver(pipeline.status) || (run ?? pipeline.run) !== pipeline.run) {
          return false;
        }
        if (!(await mayGoOnTo(db, pipelineId, name))) throw gone(`what step "${name}" needs`);
        await waitForApproval(db, pipelineId, name);
        return (await findStep(db, pipelineId, name))?.approved ?? null;
      });
    },

    /** An approval that came as a Temporal update: written where all are. */
    async decideStep(
      of: PipelineWorkflowInput & { request: ApproveRequest },
    ): Promise<{ step: string; approved: boolean }> {
      const { step, approved = true, by, note } = of.request;
      try {
        const decided = await decideStep(ctx, of.pipelineId, null, step, {
          approved,
          by: by === undefined ? "temporal" : `temporal:${by}`,
          note: note ?? null,
        });
        return { step: decided, approved };
      } catch (error) {
        if (!(error instanceof ForgeError)) throw error;
        throw ApplicationFailure.nonRetryable(error.message, error.code);
      }
    },

    /** Cancels the pipeline as its user would. Idempotent. */
    async cancelPipeline({ pipelineId }: PipelineWorkflowInput): Promise<void> {
      const answer = await cancelPipeline(ctx, pipelineId, null, "temporal");
      ctx.logger.info({ pipeline_id: pipelineId, answer }, "pipeline cancelled through Temporal");
    },

    /** The last write of a run: how it ended is told by its steps. Idempotent. */
    async closePipeline({
      pipelineId,
      run,
    }: PipelineWorkflowInput & { run?: number }): Promise<PipelineEnd> {
      return await transaction(ctx.pool, async (db) => {
        const pipeline = await lockPipeline(db, pipelineId, null);
        if (!pipeline) return { status: "none" as const };
        if ((run ?? pipeline.run) !== pipeline.run) return { status: "superseded" as const };
        if (isOver(pipeline.status)) return endOf(pipeline.status, pipeline.error_code);
        const end = judgeRun(pipeline, await listSteps(db, [pipelineId]));
        await closeRun(db, pipelineId, end);
        ctx.logger.info({ pipeline_id: pipelineId, ...end }, "pipeline ended");
        return endOf(end.status, end.errorCode);
      });
    },
  };
}

/** The jobs of a cancelled pipeline are cancelled by the way: whoever asked may not have come to it. */
async function ordersOf(
  ctx: Context,
  pipeline: PipelineRow | undefined,
  steps: StepView[],
): Promise<PipelineOrders> {
  const isCancelling = pipeline?.cancel_requested_at != null && !isOver(pipeline.status);
  if (isCancelling) await cancelItsJobs(ctx, pipeline.pipeline_id, "pipeline");
  const decided = steps.flatMap(({ name, approved }) =>
    approved === null ? [] : [[name, approved] as const],
  );
  return {
    ...(pipeline && { run: pipeline.run }),
    // Nothing more is begun of a run that is over either: its end may be written by a workflow task that failed,
    // and the next one does all again.
    cancelled: isCancelling || (pipeline !== undefined && isOver(pipeline.status)),
    decisions: Object.fromEntries(decided),
  };
}

function judgeRun(
  pipeline: PipelineRow,
  steps: StepView[],
): { status: PipelineStatus; error: string | null; errorCode: string | null } {
  const needed = steps.filter((step) => !step.optional);
  const fault =
    needed.find(({ status }) => status === "failed") ??
    steps.find(({ status }) => status === "failed");
  if (needed.every(({ status }) => status === "completed")) {
    return { status: "completed", error: null, errorCode: null };
  }
  if (pipeline.cancel_requested_at !== null) {
    return { status: "cancelled", error: null, errorCode: null };
  }
  return {
    status: "failed",
    error: fault ? `step "${fault.name}": ${fault.error}` : "a step was left out",
    errorCode: fault?.error_code ?? "step_failed",
  };
}

function endOf(status: PipelineStatus, code: string | null): PipelineEnd {
  if (status === "failed") return { status, code: code ?? "step_failed" };
  return { status: status === "cancelled" ? "cancelled" : "completed" };
}
