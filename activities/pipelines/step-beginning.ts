import { ForgeError } from "../../core/errors";
import type { JobType } from "../../core/jobs/job-types";
import type { Submission } from "../../core/jobs/payloads";
import { requirementGroupOf, requirementsOf } from "../../core/jobs/requirements";
import { newId } from "../../platform/ids";
import type { Queryable } from "../../platform/postgres/pool";
import { findBudget } from "../../services/billing/budgets";
import { estimateSubmission } from "../../services/billing/estimate-job";
import { requireBudget } from "../../services/billing/require-budget";
import type { Context } from "../../services/context";
import type { JobWarning } from "../../services/jobs/jobs";
import { checkReferences } from "../../services/jobs/new-job";
import {
  listResults,
  listSteps,
  type StepRow,
  sizeOfSubmissions,
} from "../../services/pipelines/pipeline-steps";
import { costsOfPipelines, type PipelineRow } from "../../services/pipelines/pipelines";
import type { StepStart } from "../../services/pipelines/step-changes";
import { findReusableJob, readHistory } from "../../services/pipelines/step-history";
import { notYet } from "../context";
import { chooseStep } from "./choose-candidate";
import { StepFault } from "./step-fault";
import { findReuseKey, resolveSubmission } from "./step-submission";

/** Maximum total size of the submissions of a pipeline's steps, in bytes. */
const MAX_SUBMISSIONS_BYTES = 16 * 1024 * 1024;

/**
 * Prepares the beginning of a step, without writing anything. Resolves the step's submission.
 * Returns the earlier job whose artifact the step reuses, or else the id and the expected cost of a
 * new job.
 * @throws StepFault if the step can never begin.
 */
export async function prepare(
  ctx: Context,
  pipeline: PipelineRow,
  step: StepRow,
): Promise<StepStart> {
  const { user_id: userId, pipeline_id: pipelineId } = pipeline;
  const needed = await listResults(ctx.pool, pipelineId, step.needs);
  const chosen = chooseStep(step, needed);
  const submission = resolveSubmission(ctx, step, needed, chosen);
  if ((await sizeOfSubmissions(ctx.pool, pipelineId)) > MAX_SUBMISSIONS_BYTES) {
    throw new StepFault("step_invalid", "the submissions of its pipeline are too large together");
  }
  const warnings = await checkedNames(ctx, userId, submission.payload);
  const reuseKey = await findReuseKey(ctx, userId, step, submission);
  const earlier =
    pipeline.reuse && !step.is_fresh && reuseKey !== null
      ? await findReusableJob(ctx.pool, userId, reuseKey)
      : undefined;
  const beginning = { submission, warnings, reuseKey, chosen };
  if (earlier !== undefined) {
    return { ...beginning, jobId: earlier, reused: true, expectedCostUsd: null };
  }
  // If the tenant's queue is full, `admit` throws, and Temporal retries the activity. A cancelled
  // pipeline skips this check, because it inserts no job.
  if (pipeline.cancel_requested_at === null) {
    await ctx.queueQuota.refresh(userId);
    const { resources, payload } = submission;
    const needs = requirementsOf(step.job_type, resources, ctx.config.jobs.policy, payload);
    admit(ctx, userId, requirementGroupOf(userId, needs));
  }
  const expectedCostUsd = await expectCost(ctx, pipeline, step.job_type, submission);
  return { ...beginning, jobId: newId("job"), reused: false, expectedCostUsd };
}

/**
 * Checks that the tenant's queue has room for a job of this requirement group.
 * @throws notYet if the queue is full, so that Temporal retries the activity.
 */
function admit(ctx: Context, userId: string, requirementGroup: string): void {
  try {
    ctx.queueQuota.admit(userId, requirementGroup);
  } catch (error) {
    throw error instanceof ForgeError ? notYet(error.message) : error;
  }
}

/** The estimated cost of a step's job in USD; null if its tenant has no budget. */
async function expectCost(
  ctx: Context,
  { user_id: userId, rate_card: card }: PipelineRow,
  type: JobType,
  submission: Submission,
): Promise<number | null> {
  if (!(await findBudget(ctx.pool, userId))) return null;
  const { expectedUsd } = await estimateSubmission(ctx, userId, type, submission, card);
  return expectedUsd.toNumber();
}

/**
 * Checks the expected cost of a step's job against the tenant's monthly budget.
 * @throws StepFault if the budget is exhausted.
 */
export async function requireTenantBudget(
  ctx: Context,
  db: Queryable,
  { user_id: userId, rate_card: card }: PipelineRow,
  expectedUsd: number | null,
): Promise<void> {
  try {
    await requireBudget(ctx, db, userId, card, expectedUsd ?? 0);
  } catch (error) {
    if (!(error instanceof ForgeError) || error.code !== "budget_exhausted") throw error;
    throw new StepFault("budget_exhausted", error.message);
  }
}

async function checkedNames(
  ctx: Context,
  userId: string,
  payload: Record<string, unknown>,
): Promise<JobWarning[]> {
  try {
    return await checkReferences(ctx, userId, payload);
  } catch (error) {
    if (error instanceof ForgeError) throw new StepFault("step_invalid", error.message);
    throw error;
  }
}

/**
 * Checks that the pipeline's budget covers the cost of its jobs so far plus the expected cost of
 * its running steps and of the step `name`.
 * @throws StepFault if the budget is too small.
 */
export async function requirePipelineBudget(
  db: Queryable,
  { pipeline_id: pipelineId, user_id: userId, budget_usd: budget }: PipelineRow,
  name: string,
): Promise<void> {
  if (budget === null) return;
  const steps = await listSteps(db, [pipelineId]);
  const types = steps
    .filter((step) => step.name === name || (step.status === "running" && !step.reused))
    .map((step) => step.job_type);
  const history = await readHistory(db, userId, types);
  const expected = types.reduce(
    (sum, type) => sum + (history.find(({ job_type }) => job_type === type)?.cost_usd ?? 0),
    0,
  );
  const spent = (await costsOfPipelines(db, [pipelineId])).get(pipelineId) ?? 0;
  if (spent < budget && spent + expected <= budget) return;
  const numbers = `${usd(spent)} of ${usd(budget)} are spent, and ${usd(expected)} more are expected`;
  throw new StepFault("budget_exhausted", `the pipeline's budget does not allow it: ${numbers}`);
}

const usd = (amount: number): string => `${Number(amount.toFixed(6))} USD`;
