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
  listResults,
  type StepRow,
} from "../../services/pipelines/pipeline-steps";
import {
  findPipeline,
  isSuperseded,
  lockPipeline,
  type PipelineRow,
} from "../../services/pipelines/pipelines";
import {
  beginStep,
  endStep,
  failStep,
  type StepEnding,
  type StepStart,
} from "../../services/pipelines/step-changes";
import { missingFromDatabase } from "../context";
import { haveNeededStepsEnded } from "./ready-step";
import { prepare, requirePipelineBudget, requireTenantBudget } from "./step-beginning";
import { endingOf } from "./step-ending";
import { StepFault } from "./step-fault";

const SUPERSEDED: BegunStep = { how: "ended", end: "superseded" };

export function createStepActivities(ctx: Context) {
  return {
    /**
     * Begins a step: resolves its submission with the values of earlier steps, and gives its job an
     * id. Idempotent: within a run, a second call returns the same job.
     */
    async beginStep(of: StepInput): Promise<BegunStep> {
      const { pipeline, step } = await findPipelineAndStep(ctx, of);
      if (isSuperseded(of, pipeline)) return SUPERSEDED;
      const isPending = step.status === "pending" && step.job_id === null;
      if (!isPending && step.status !== "waiting_approval") return begunAs(step);
      const isApproved = !step.needs_approval || step.approved === true;
      if (!isApproved || !(await haveNeededStepsEnded(ctx.pool, of.pipelineId, of.step))) {
        if (isSuperseded(of, (await findPipelineAndStep(ctx, of)).pipeline)) return SUPERSEDED;
        throw missingFromDatabase(`what step "${of.step}" of ${of.pipelineId} needs`);
      }
      try {
        await begin(ctx, of, await prepare(ctx, pipeline, step));
      } catch (error) {
        if (!(error instanceof StepFault)) throw error;
        const { message, code } = error;
        await locked(ctx, of, (db) => failStep(db, of.pipelineId, of.step, message, code));
      }
      // Read again: a concurrent call may have begun or ended the step.
      const now = await findPipelineAndStep(ctx, of);
      return isSuperseded(of, now.pipeline) ? SUPERSEDED : begunAs(now.step);
    },

    /**
     * Inserts the job of a step that has begun, so that the scheduler can assign it. Called by the
     * job's own workflow, which the pipeline's workflow starts before the job is in the database.
     * Returns false if the pipeline was cancelled, or the step is no longer running. Idempotent.
     */
    insertStepJob: ({ jobId }: { jobId: string }): Promise<boolean> => insertJobOfStep(ctx, jobId),

    /**
     * Ends a step: decides from the job's status and the step's gate how the step ended. Throws a
     * retryable error until the job has ended. Throws a non-retryable error if the database has
     * lost the step's beginning. Idempotent.
     */
    async endStep(of: StepInput): Promise<StepEnd> {
      const { pipeline, step } = await findPipelineAndStep(ctx, of);
      if (isSuperseded(of, pipeline)) return "superseded";
      if (step.status === "running") {
        // If the job's workflow was terminated before it inserted the job, insert the job here. The
        // courier then starts another workflow for it.
        if (step.job_status === null && step.job_id) await insertJobOfStep(ctx, step.job_id, 0);
        const [work] = await listResults(ctx.pool, of.pipelineId, [of.step]);
        await endAs(ctx, pipeline, step, endingOf(pipeline, step, work));
      }
      const now = await findPipelineAndStep(ctx, of);
      if (isSuperseded(of, now.pipeline)) return "superseded";
      const { status } = now.step;
      if (hasEnded(status)) return status;
      const name = `step "${of.step}" of ${of.pipelineId}`;
      if (status !== "running") throw missingFromDatabase(`the beginning of ${name}`);
      throw new Error(`${name} is ${status}`);
    },
  };
}

async function findPipelineAndStep(
  { pool }: Context,
  { pipelineId, step: name }: StepInput,
): Promise<{ pipeline: PipelineRow; step: StepRow }> {
  const pipeline = await findPipeline(pool, pipelineId, null);
  const step = await findStep(pool, pipelineId, name);
  if (!pipeline || !step) throw missingFromDatabase(`step "${name}" of ${pipelineId}`);
  return { pipeline, step };
}

/**
 * Locks the pipeline. Runs `work` only if the pipeline is still in the given run, and is neither
 * over nor cancelled.
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
 * Ends the step as `ending` says, unless the pipeline was resumed in the meantime: the resume may
 * have replaced the step's gate, and `ending` is the result of the old gate.
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
 * Begins a step under the pipeline's lock, so that its budget check includes all steps that began
 * before.
 */
async function begin(ctx: Context, of: StepInput, prepared: StepStart): Promise<void> {
  await locked(ctx, of, async (db, pipeline) => {
    if (!prepared.reused) {
      await requirePipelineBudget(db, pipeline, of.step);
      await requireTenantBudget(ctx, db, pipeline, prepared.expectedCostUsd);
    }
    await beginStep(db, of.pipelineId, of.step, prepared);
  });
}

async function insertJobOfStep(
  ctx: Context,
  jobId: string,
  startAfterS: number | null = null,
): Promise<boolean> {
  const exists = await transaction(ctx.pool, (db) => insertOnce(ctx, db, jobId, startAfterS));
  if (exists) ctx.signals.queueChanged();
  return exists;
}

async function insertOnce(
  ctx: Context,
  db: Queryable,
  jobId: string,
  startAfterS: number | null,
): Promise<boolean> {
  if (await findJob(db, jobId, null)) return true;
  const known = await findStepOfJob(db, jobId);
  const pipeline = known && (await lockPipeline(db, known.pipeline_id, null));
  // Read the step again under the lock: before this process got the lock, the pipeline may have
  // been cancelled and resumed.
  const step = pipeline && (await findStepOfJob(db, jobId));
  if (step?.status !== "running" || !step.submission) return false;
  if (!pipeline || pipeline.cancel_requested_at !== null) return false;
  const job = newJob(ctx, {
    type: step.job_type,
    submission: step.submission,
    userId: pipeline.user_id,
    createdBy: pipeline.created_by,
    requestId: pipeline.request_id,
  });
  await insertJob(db, {
    ...job,
    job_id: jobId,
    rate_card: pipeline.rate_card,
    expected_cost_usd: step.expected_cost_usd,
    warnings: step.warnings,
    pipeline_id: step.pipeline_id,
    pipeline_step: step.name,
    pipeline_run: step.run,
    reuse_key: step.reuse_key,
    startAfterS,
  });
  ctx.metrics.submitted.inc({ job_type: step.job_type });
  return true;
}

function begunAs(step: StepRow): BegunStep {
  const { job_id: jobId, job_type: jobType, options } = step;
  switch (step.status) {
    case "running":
      if (step.reused || (step.job_status && isFinal(step.job_status))) return { how: "reused" };
      if (jobId === null) break;
      return { how: "job", jobId, jobType, maxAttempts: options.max_attempts };
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
