import { isFinal } from "../../core/jobs/states";
import { isOver } from "../../core/pipelines/step";
import {
  type BegunStep,
  hasEnded,
  type StepEnd,
  type StepInput,
} from "../../core/pipelines/workflow";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../../services/context";
import { findJob, insertJob } from "../../services/jobs/jobs";
import { newJob } from "../../services/jobs/new-job";
import {
  findStep,
  findStepOfJob,
  listWork,
  type StepRow,
} from "../../services/pipelines/pipeline-steps";
import { findPipeline, lockPipeline, type PipelineRow } from "../../services/pipelines/pipelines";
import {
  type Beginning,
  beginStep,
  endStep,
  failStep,
  type StepEnding,
} from "../../services/pipelines/step-changes";
import { gone } from "../context";
import { mayGoOnTo } from "./ready-step";
import { prepare, requirePipelineBudget, requireTenantBudget } from "./step-beginning";
import { endingOf } from "./step-ending";
import { StepFault } from "./step-submission";

const SUPERSEDED: BegunStep = { how: "ended", end: "superseded" };

export function createStepActivities(ctx: Context) {
  return {
    /**
     * Begins a step: resolves its submission with the values of earlier steps, and gives its job an
     * id. Idempotent: within a run, a second call returns the same job.
     */
    async beginStep(of: StepInput): Promise<BegunStep> {
      const { pipeline, step } = await findOf(ctx, of);
      if (isSuperseded(of, pipeline)) return SUPERSEDED;
      if (step.status !== "pending" || step.job_id !== null) return begunAs(step);
      if (!(await mayGoOnTo(ctx.pool, of.pipelineId, of.step))) {
        if (isSuperseded(of, (await findOf(ctx, of)).pipeline)) return SUPERSEDED;
        throw gone(`the end of what step "${of.step}" of ${of.pipelineId} needs`);
      }
      try {
        await begin(ctx, of, await prepare(ctx, pipeline, step));
      } catch (error) {
        if (!(error instanceof StepFault)) throw error;
        await locked(ctx, of, (db) =>
          failStep(db, of.pipelineId, of.step, error.message, error.code),
        );
      }
      // Read again: a concurrent call may have begun or ended the step.
      const now = await findOf(ctx, of);
      return isSuperseded(of, now.pipeline) ? SUPERSEDED : begunAs(now.step);
    },

    /**
     * Inserts the job of a step that has begun. From now on the scheduler can assign it. The
     * calling workflow is the job's workflow. Idempotent. Returns false if the pipeline was
     * cancelled before.
     */
    async insertStepJob({ jobId }: { jobId: string }): Promise<boolean> {
      const inserted = await transaction(ctx.pool, (db) => insertItsJob(ctx, db, jobId));
      if (inserted) ctx.signals.queueChanged();
      return inserted;
    },

    /**
     * Writes how a step ended, from its job's status and its gate. Throws while the job has not
     * ended, so that Temporal retries it. Fails without retry if the step never began, because then
     * the database has lost data. Idempotent.
     */
    async endStep(of: StepInput): Promise<StepEnd> {
      const { pipeline, step } = await findOf(ctx, of);
      if (isSuperseded(of, pipeline)) return "superseded";
      if (step.status === "running") {
        if (step.job_status === null) await recreateJob(ctx, step);
        const [work] = await listWork(ctx.pool, of.pipelineId, [of.step]);
        await endAs(ctx, pipeline, step, endingOf(pipeline, step, work));
      }
      const now = await findOf(ctx, of);
      if (isSuperseded(of, now.pipeline)) return "superseded";
      const { status } = now.step;
      if (hasEnded(status)) return status;
      if (status !== "running")
        throw gone(`the beginning of step "${of.step}" of ${of.pipelineId}`);
      throw new Error(`step "${of.step}" of ${of.pipelineId} is ${status}`);
    },
  };
}

async function findOf(
  { pool }: Context,
  { pipelineId, step: name }: StepInput,
): Promise<{ pipeline: PipelineRow; step: StepRow }> {
  const pipeline = await findPipeline(pool, pipelineId, null);
  const step = await findStep(pool, pipelineId, name);
  if (!pipeline || !step) throw gone(`step "${name}" of ${pipelineId}`);
  return { pipeline, step };
}

/** True if the pipeline is in a later run. Late retries of an earlier run must not change it. */
const isSuperseded = ({ run }: StepInput, pipeline: PipelineRow): boolean =>
  run !== undefined && run !== pipeline.run;

/**
 * Locks the pipeline and runs `work` if the pipeline is still in this run, not over and not
 * cancelled.
 */
async function locked(
  ctx: Context,
  of: StepInput,
  work: (db: Queryable, pipeline: PipelineRow) => Promise<unknown>,
): Promise<void> {
  await transaction(ctx.pool, async (db) => {
    const pipeline = await lockPipeline(db, of.pipelineId, null);
    const isActive = pipeline && !isOver(pipeline.status) && pipeline.cancel_requested_at === null;
    if (isActive && !isSuperseded(of, pipeline)) await work(db, pipeline);
  });
}

/**
 * Ends the step if the pipeline is still in this run. A resumed run may apply another gate to the
 * same job.
 */
async function endAs(
  { pool }: Context,
  { pipeline_id: pipelineId, run }: PipelineRow,
  step: StepRow,
  ending: StepEnding,
): Promise<void> {
  await transaction(pool, async (db) => {
    const now = await lockPipeline(db, pipelineId, null);
    if (now?.run === run) await endStep(db, step, ending);
  });
}

/**
 * Holds the pipeline's lock, so that each step's budget check includes the steps that began before
 * it.
 */
async function begin(ctx: Context, of: StepInput, prepared: Beginning): Promise<void> {
  await locked(ctx, of, async (db, pipeline) => {
    if (!prepared.reused) {
      await requirePipelineBudget(db, pipeline, of.step);
      await requireTenantBudget(db, pipeline, prepared.expectedCostUsd);
    }
    await beginStep(db, of.pipelineId, of.step, prepared);
  });
}

async function insertItsJob(
  ctx: Context,
  db: Queryable,
  jobId: string,
  startAfterS: number | null = null,
): Promise<boolean> {
  if (await findJob(db, jobId, null)) return true;
  const step = await findStepOfJob(db, jobId);
  const pipeline = step && (await lockPipeline(db, step.pipeline_id, null));
  if (!step?.submission || !pipeline || pipeline.cancel_requested_at !== null) return false;
  const job = newJob(ctx, {
    type: step.job_type,
    submission: step.submission,
    userId: pipeline.user_id,
    createdBy: pipeline.created_by,
    requestId: pipeline.request_id,
    rateCard: pipeline.rate_card,
    expectedCostUsd: step.expected_cost_usd,
  });
  const { pipeline_id: pipelineId, name, run, reuse_key: reuseKey, warnings } = step;
  await insertJob(db, {
    ...job,
    jobId,
    warnings,
    startAfterS,
    step: { pipelineId, name, run, reuseKey },
  });
  ctx.metrics.submitted.inc({ job_type: step.job_type });
  return true;
}

/**
 * The job's workflow was terminated before it inserted the job. Inserts it; the relay starts the
 * workflow.
 */
async function recreateJob(ctx: Context, { job_id: jobId }: StepRow): Promise<void> {
  if (jobId === null) return;
  const inserted = await transaction(ctx.pool, (db) => insertItsJob(ctx, db, jobId, 0));
  if (inserted) ctx.signals.queueChanged();
}

function begunAs(step: StepRow): BegunStep {
  switch (step.status) {
    case "running":
      if (step.reused || (step.job_status && isFinal(step.job_status))) return { how: "reused" };
      if (step.job_id === null) break;
      return {
        how: "job",
        jobId: step.job_id,
        jobType: step.job_type,
        maxAttempts: step.options.max_attempts,
      };
    case "completed":
    case "failed":
    case "skipped":
    case "cancelled":
      return { how: "ended", end: step.status };
    case "pending":
      // The pipeline was cancelled while the step was prepared.
      return { how: "ended", end: "cancelled" };
    case "waiting_approval":
      break;
  }
  throw new Error(`step "${step.name}" of ${step.pipeline_id} is ${step.status}`);
}
