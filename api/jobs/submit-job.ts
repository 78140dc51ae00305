import type { JobType } from "../../core/jobs/job-types";
import type { Submission } from "../../core/jobs/payloads";
import type { AnyCall } from "../../platform/http/route";
import type { Queryable } from "../../platform/postgres/pool";
import { createOnce, hasIdempotencyKey } from "../../services/accounts/idempotency-keys";
import { requireRoomForBytes } from "../../services/accounts/require-room";
import { estimateSubmission } from "../../services/billing/estimate-job";
import { findRateCard } from "../../services/billing/rate-cards";
import { requireBudget } from "../../services/billing/require-budget";
import type { Context } from "../../services/context";
import type { JobInserter } from "../../services/jobs/job-inserter";
import { insertJob, type JobRow, type UnpricedJob } from "../../services/jobs/jobs";
import { checkReferences, newJob } from "../../services/jobs/new-job";
import { type Job, presentJob } from "./present-job";

interface JobRequest {
  type: JobType;
  submission: Submission;
  /** The tenant that owns the job. */
  userId: string;
  retriedFrom?: string;
  /**
   * The content that identifies the request. A request that repeats an Idempotency-Key with
   * different content is refused.
   */
  content: unknown;
}

/**
 * Accepts a job. Once this returns, the job can be assigned and will reach a final status.
 *
 * While an INSERT of a tenant runs, that tenant's further jobs may wait and then share the next
 * INSERT. The route must set `outsideConnectionQueue`. Otherwise, each waiting job would occupy a
 * slot of the queue for database connections.
 */
export async function submitJob(
  ctx: Context,
  inserter: JobInserter,
  call: AnyCall,
  requested: JobRequest,
): Promise<Job> {
  const { type, submission, userId } = requested;
  const [warnings] = await ctx.connectionQueues.user.run(userId, () =>
    Promise.all([
      checkReferences(ctx, userId, submission.payload),
      requireRoomForBytes(ctx.pool, ctx.config.limits.caps, userId),
      ctx.queueQuota.refresh(userId),
    ]),
  );
  const job: UnpricedJob = {
    ...newJob(ctx, {
      type,
      submission,
      userId,
      createdBy: call.principal.keyName,
      requestId: call.request.id,
    }),
    warnings,
    retried_from: requested.retriedFrom ?? null,
  };
  const { answer, isNew, hasStarted } = await insertOnce(ctx, inserter, call, requested, job);
  if (!isNew) return answer;
  ctx.metrics.submitted.inc({ job_type: type });
  call.request.log.info({ job_id: job.job_id, job_type: type, user_id: userId }, "job accepted");
  if (!hasStarted) ctx.signals.queueChanged(job.requirementGroup);
  ctx.signals.emit("outbox", { topic: "start", jobId: job.job_id });
  return answer;
}

interface Submitted {
  answer: Job;
  /** False if the answer is that of an earlier request with the same Idempotency-Key. */
  isNew: boolean;
  /** A waiting worker already runs the job. */
  hasStarted?: boolean;
}

/**
 * The fast statement of `insertOnce` inserted no job, because the tenant has a budget. Thrown, so
 * that the transaction does not store the idempotency key.
 */
class HasBudget extends Error {}

/**
 * Inserts the job once per Idempotency-Key. Most tenants have no budget, so first tries a fast
 * statement that inserts nothing if the tenant has a budget. In that case, checks the budget and
 * then inserts the job.
 */
async function insertOnce(
  ctx: Context,
  inserter: JobInserter,
  call: AnyCall,
  requested: JobRequest,
  job: UnpricedJob,
): Promise<Submitted> {
  const { userId, content } = requested;
  let admitted: UnpricedJob | undefined;
  const admit = (): UnpricedJob => {
    if (admitted) return admitted;
    ctx.queueQuota.admit(userId, job.requirementGroup);
    admitted = { ...job, startAfterS: ctx.startPace.nextDelayS() };
    return admitted;
  };
  const queue = ctx.connectionQueues.user;
  if (!ctx.tenantsWithBudget.has(userId)) {
    const shown = (row: JobRow | undefined): Job => {
      if (!row) throw new HasBudget();
      return presentJob(row);
    };
    try {
      if (!hasIdempotencyKey(call.request)) {
        const { row, hasStarted } = await inserter.insert(admit());
        return { answer: shown(row), isNew: true, hasStarted };
      }
      return await inserter.insertAndStart(userId, admit, (insert) =>
        createOnce(ctx, call, { content, create: async (db) => shown(await insert(db)) }),
      );
    } catch (error) {
      if (!(error instanceof HasBudget)) throw error;
      ctx.tenantsWithBudget.add(userId);
    }
  }
  return await queue.run(userId, () => insertWithinBudget(ctx, call, requested, admit));
}

async function insertWithinBudget(
  ctx: Context,
  call: AnyCall,
  { type, submission, userId, content }: JobRequest,
  admit: () => UnpricedJob,
): Promise<{ answer: Job; isNew: boolean }> {
  const rateCard = await findRateCard(ctx.pool, userId);
  const { expectedUsd } = await estimateSubmission(ctx, userId, type, submission, rateCard);
  const create = async (db: Queryable): Promise<Job> => {
    const job = admit();
    const budgetWarnings = await requireBudget(ctx, db, userId, rateCard, expectedUsd);
    const row = await insertJob(db, {
      ...job,
      rate_card: rateCard,
      expected_cost_usd: expectedUsd.toNumber(),
      warnings: [...job.warnings, ...budgetWarnings],
    });
    if (!row) throw new Error(`job ${job.job_id} already exists`);
    return presentJob(row);
  };
  return await ctx.budgetMutex.runExclusive(userId, () =>
    createOnce(ctx, call, { content, create }),
  );
}
