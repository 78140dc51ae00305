import { isDeepStrictEqual } from "node:util";
import { dueOf } from "../../core/pipelines/due-work";
import { isOver } from "../../core/pipelines/step";
import { PIPELINE_WORKFLOW } from "../../core/pipelines/workflow";
import {
  jobWorkflowId,
  NOT_YET,
  pipelineIdOfWorkflow,
  pipelineWorkflowId,
} from "../../core/workflow-ids";
import type { Context } from "../context";
import type { WorkflowKind } from "../temporal/compared-rows";
import { deleteStuckWrites } from "../temporal/stuck-writes";
import { wakeWorkflow } from "../temporal/wake-workflow";
import {
  isIdle,
  isOpen,
  type PendingActivity,
  readWorkflow,
  type WorkflowState,
} from "../temporal/workflow-state";
import { type ComparedPipeline, findComparedPipeline, PIPELINES } from "./compared-pipelines";
import { type PipelineWake, recordWake } from "./workflow-wakes";

export const pipelineWorkflows = (ctx: Context): WorkflowKind => ({
  types: [PIPELINE_WORKFLOW],
  idOf: pipelineIdOfWorkflow,
  rows: PIPELINES,
  compare: (pipelineId) => comparePipeline(ctx, pipelineId),
});

/**
 * Wakes a pipeline's workflow, or starts it if it does not run. A new execution reads the steps'
 * state and continues from it.
 */
export async function wakePipeline(ctx: Context, wake: PipelineWake): Promise<void> {
  const { pipeline_id: pipelineId, user_id: userId, request_id: requestId, asked: version } = wake;
  await wakeWorkflow(ctx, {
    workflow: PIPELINE_WORKFLOW,
    workflowId: pipelineWorkflowId(pipelineId),
    input: { pipelineId, requestId },
    userId,
    summary: `pipeline of ${userId}`,
  });
  await recordWake(ctx.pool, pipelineId, version);
}

/**
 * Compares a pipeline's workflow with its row and repairs differences:
 * - `gone`: the pipeline has not ended, but its workflow is not open. Starts the workflow again.
 * - `ahead`: according to the row, some work is due, but the workflow neither does this work nor
 *   waits for it. This happens after the database was restored to an earlier state. Terminates the
 *   workflow and starts it again.
 * - `orphan`: the workflow is open although its row is missing, or the workflow is open and idle
 *   although its pipeline has ended. This happens after the database was restored. Terminates the
 *   workflow.
 */
async function comparePipeline(ctx: Context, pipelineId: string): Promise<void> {
  const before = await findComparedPipeline(ctx.pool, pipelineId);
  const workflow = await readWorkflow(ctx, pipelineWorkflowId(pipelineId));
  const row = await findComparedPipeline(ctx.pool, pipelineId);
  // Repair nothing if the row changed while Temporal was read (`before` differs from `row`), or if
  // the courier has not delivered the last wake yet (`told` < `asked`). A later sweep compares
  // again.
  if (!isDeepStrictEqual(before, row) || (row && row.told < row.asked)) return;
  const repair = repairOf(workflow, row);
  if (repair === undefined) return;
  const fields = { pipeline_id: pipelineId, repair };
  ctx.logger.warn(fields, "pipeline workflow differs from its row; repairing it");
  ctx.metrics.repairs.inc({ repair });
  if (isOpen(workflow)) await workflow.terminate(REASONS[repair]);
  await deleteStuckWrites(ctx.pool, pipelineWorkflowId(pipelineId), null);
  if (row && repair !== "orphan") await wakePipeline(ctx, row);
}

type Repair = "gone" | "ahead" | "orphan";

const REASONS: Record<Repair, string> = {
  gone: "the workflow has closed",
  ahead: "the workflow is ahead of its pipeline; restarted",
  orphan: "the pipeline is over or not in the database",
};

function repairOf(workflow: WorkflowState, row: ComparedPipeline | undefined): Repair | undefined {
  if (!row) return isOpen(workflow) ? "orphan" : undefined;
  if (isOver(row.status)) return isOpen(workflow) && isIdle(workflow) ? "orphan" : undefined;
  if (!isOpen(workflow)) return "gone";
  return isDoingItsWork(workflow, row) ? undefined : "ahead";
}

/**
 * Returns whether the workflow is working on everything that is due for its pipeline. Waiting for a
 * running step's job counts as work. The result is always true for a healthy workflow: it marks a
 * step as running before it waits for the step's job, and continues when the job has ended. An
 * activity that fails counts as work, because Temporal retries the activity. An activity that keeps
 * failing is recorded as a stuck write, so it is noticed even though the reconciler does not repair
 * the workflow.
 */
function isDoingItsWork(
  { hasTask, activities, children }: WorkflowState,
  row: ComparedPipeline,
): boolean {
  const { running, hasNextAction } = dueOf(row.steps, row.cancel_requested_at !== null);
  // A child workflow without an id is about to start.
  if (hasTask || children.includes("") || activities.some(isWorking)) return true;
  if (hasNextAction && !activities.some(({ type }) => type !== END_STEP)) return false;
  return running.every((name) => {
    const jobId = row.steps.find((step) => step.name === name)?.job_id ?? "";
    return (
      children.includes(jobWorkflowId(jobId)) ||
      activities.some(({ type, failure }) => type === END_STEP && failure?.message.includes(jobId))
    );
  });
}

const END_STEP = "endStep";

/** False for an activity that only waits: for a job's end, or for space in a queue. */
const isWorking = ({ failure }: PendingActivity): boolean => failure?.type !== NOT_YET;
