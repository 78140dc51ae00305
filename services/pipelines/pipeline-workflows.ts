import { isDeepStrictEqual } from "node:util";
import { dueOf } from "../../core/pipelines/due";
import { isOver } from "../../core/pipelines/step";
import { PIPELINE_WORKFLOW } from "../../core/pipelines/workflow";
import {
  jobWorkflowId,
  NOT_YET,
  pipelineIdOfWorkflow,
  pipelineWorkflowId,
} from "../../core/workflow-ids";
import type { Context } from "../context";
import { forgetStuckWrites } from "../jobs/stuck-writes";
import { wakeWorkflow } from "../temporal/wake-workflow";
import type { WorkflowKind } from "../temporal/workflow-kind";
import {
  isIdle,
  isOpen,
  type PendingActivity,
  readWorkflow,
  type WorkflowState,
} from "../temporal/workflow-state";
import { type OwedPipeline, recordWake } from "./pipelines";
import {
  type ComparedPipeline,
  findComparedPipeline,
  listStandingPipelines,
  PIPELINES,
} from "./standing-pipelines";

/** Pipelines as the reconciler compares them. */
export const pipelineWorkflows = (ctx: Context): WorkflowKind => ({
  types: [PIPELINE_WORKFLOW],
  idOf: pipelineIdOfWorkflow,
  listStanding: (forS, afterId, limit) => listStandingPipelines(ctx.pool, forS, afterId, limit),
  rows: PIPELINES,
  compare: (pipelineId) => comparePipeline(ctx, pipelineId),
});

/** Starts a pipeline's workflow, or wakes the one that runs. A started one goes on where the steps are. */
export async function wakePipeline(ctx: Context, owed: OwedPipeline): Promise<void> {
  const { pipeline_id: pipelineId, user_id: userId, request_id: requestId, asked } = owed;
  await wakeWorkflow(ctx, {
    workflow: PIPELINE_WORKFLOW,
    workflowId: pipelineWorkflowId(pipelineId),
    input: { pipelineId, requestId },
    userId,
    summary: `pipeline of ${userId}`,
  });
  await recordWake(ctx.pool, pipelineId, asked);
}

/**
 * Compares a pipeline's workflow with what Postgres knows, and repairs what differs: a workflow that is gone
 * while its pipeline is under way; and, after the database came back with less than it had, one that waits for
 * something else than its pipeline does, or whose pipeline is over or not there.
 */
async function comparePipeline(ctx: Context, pipelineId: string): Promise<void> {
  const before = await findComparedPipeline(ctx.pool, pipelineId);
  const workflow = await readWorkflow(ctx, pipelineWorkflowId(pipelineId));
  const row = await findComparedPipeline(ctx.pool, pipelineId);
  // Both looks at the row must be the same: then it was like that when Temporal was asked.
  if (!isDeepStrictEqual(before, row) || (row && row.told < row.asked)) return;
  const repair = repairOf(workflow, row);
  if (repair === undefined) return;
  ctx.logger.warn(
    { pipeline_id: pipelineId, repair },
    "its workflow differs from its row; repairing",
  );
  ctx.metrics.repairs.inc({ repair });
  if (isOpen(workflow)) await workflow.terminate(REASONS[repair]);
  await forgetStuckWrites(ctx.pool, pipelineWorkflowId(pipelineId), null);
  if (row && repair !== "orphan") await wakePipeline(ctx, row);
}

type Repair = "gone" | "ahead" | "orphan";

const REASONS: Record<Repair, string> = {
  gone: "it has closed",
  ahead: "does not wait for what its pipeline does; started again",
  orphan: "its pipeline is not in the database, or is over",
};

function repairOf(workflow: WorkflowState, row: ComparedPipeline | undefined): Repair | undefined {
  if (!row) return isOpen(workflow) ? "orphan" : undefined;
  if (isOver(row.status)) return isOpen(workflow) && isIdle(workflow) ? "orphan" : undefined;
  if (!isOpen(workflow)) return "gone";
  return isAtWork(workflow, row) ? undefined : "ahead";
}

/**
 * Whether a workflow does, or waits for, all that its pipeline needs it for. A healthy one always does: a step is
 * written as running before its job is waited for, and each end that is waited for makes it run. An activity that
 * fails counts as work: it is tried again, and seen as a stuck write.
 */
function isAtWork(
  { hasTask, activities, children }: WorkflowState,
  row: ComparedPipeline,
): boolean {
  const { running, isNext } = dueOf(row.steps, row.cancel_requested_at !== null);
  // A child without an id is about to start.
  if (hasTask || children.includes("") || activities.some(isAnyWork)) return true;
  if (isNext && !activities.some(({ type }) => type !== END_STEP)) return false;
  return running.every((name) => {
    const jobId = row.steps.find((step) => step.name === name)?.job_id ?? "";
    return (
      children.includes(jobWorkflowId(jobId)) ||
      activities.some(({ type, failure }) => type === END_STEP && failure?.message.includes(jobId))
    );
  });
}

const END_STEP = "endStep";

/** It is not known that it waits for one thing only: for a job's end, or for room in a queue. */
const isAnyWork = ({ failure }: PendingActivity): boolean => failure?.type !== NOT_YET;
