import type { JobType } from "../../core/jobs/job-types";
import type { Submission } from "../../core/jobs/payloads";
import type { AnyCall } from "../../platform/http/route";
import { type Creation, createOnce } from "../../services/accounts/idempotency";
import { requireRoomForBytes } from "../../services/accounts/require-room";
import { estimateSubmission } from "../../services/billing/estimate-job";
import { findTerms } from "../../services/billing/rate-cards";
import { requireBudget } from "../../services/billing/require-budget";
import type { Context } from "../../services/context";
import { insertJob } from "../../services/jobs/jobs";
import { checkReferences, newJob } from "../../services/jobs/new-job";
import { type Job, presentJob } from "./present-job";

interface JobRequest {
  type: JobType;
  submission: Submission;
  /** The tenant that owns the job. */
  userId: string;
  retriedFrom?: string;
  /**
   * Compared when an Idempotency-Key is repeated: a retry has the same content; a request with
   * other content is refused.
   */
  content: unknown;
}

/** Accepts a job. Once it returns, the job can be assigned and will reach a final status. */
export async function submitJob(ctx: Context, call: AnyCall, requested: JobRequest): Promise<Job> {
  const { type, submission, userId } = requested;
  const { caps } = ctx.config.limits;
  const [warnings, { rateCard, hasBudget }] = await Promise.all([
    checkReferences(ctx, userId, submission.payload),
    findTerms(ctx.pool, userId),
    requireRoomForBytes(ctx.pool, caps, userId),
    ctx.queueQuota.refresh(userId),
  ]);
  const expected = hasBudget
    ? await estimateSubmission(ctx, userId, type, submission, rateCard)
    : undefined;
  const job = newJob(ctx, {
    type,
    submission,
    userId,
    createdBy: call.principal.keyName,
    requestId: call.request.id,
    rateCard,
    expectedCostUsd: expected?.expectedUsd.toNumber() ?? null,
  });
  const create: Creation<Job> = {
    content: requested.content,
    isOneStatement: expected === undefined,
    create: async (db) => {
      ctx.queueQuota.admit(userId, job.requirementGroup);
      const budgetWarnings =
        expected && (await requireBudget(ctx, db, userId, rateCard, expected.expectedUsd));
      const row = await insertJob(db, {
        ...job,
        warnings: [...warnings, ...(budgetWarnings ?? [])],
        retried_from: requested.retriedFrom ?? null,
        startAfterS: ctx.config.outbox.startAfterS,
      });
      if (!row) throw new Error(`job ${job.job_id} already exists`);
      return presentJob(row);
    },
  };
  const once = () => createOnce(ctx, call, create);
  const { answer, isNew } = await (expected ? ctx.budgetMutex.runExclusive(userId, once) : once());
  if (!isNew) return answer;
  ctx.metrics.submitted.inc({ job_type: type });
  call.request.log.info({ job_id: job.job_id, job_type: type, user_id: userId }, "job accepted");
  ctx.signals.queueChanged(job.requirementGroup);
  ctx.signals.emit("outbox", { topic: "start", jobId: job.job_id });
  return answer;
}
