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
import { checkNames, newJob } from "../../services/jobs/new-job";
import { type Job, presentJob } from "./present-job";

interface Request {
  type: JobType;
  submission: Submission;
  /** Whose job it is. */
  userId: string;
  retriedFrom?: string;
  /** What was asked for, by which a repeated Idempotency-Key is told from a reused one. */
  content: unknown;
}

/** Accepts a job: from the answer on, it is claimable and will come to an end. */
export async function submitJob(ctx: Context, call: AnyCall, asked: Request): Promise<Job> {
  const { type, submission, userId } = asked;
  const { caps } = ctx.config.limits;
  const [warnings, { rateCard, hasBudget }] = await Promise.all([
    checkNames(ctx, userId, submission.payload),
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
    content: asked.content,
    isOneStatement: expected === undefined,
    create: async (db) => {
      ctx.queueQuota.admit(userId, job.shape);
      const told = expected && (await requireBudget(db, userId, rateCard, expected.expectedUsd));
      const row = await insertJob(db, {
        ...job,
        warnings: [...warnings, ...(told ?? [])],
        retriedFrom: asked.retriedFrom ?? null,
        startAfterS: ctx.config.outbox.startAfterS,
      });
      if (!row) throw new Error(`${job.jobId} is there already`);
      return presentJob(row);
    },
  };
  const once = () => createOnce(ctx, call, create);
  const { answer, isNew } = await (expected ? ctx.budgetMutex.runExclusive(userId, once) : once());
  if (!isNew) return answer;
  ctx.metrics.submitted.inc({ job_type: type });
  call.request.log.info({ job_id: job.jobId, job_type: type, user_id: userId }, "job accepted");
  ctx.signals.queueChanged();
  ctx.signals.emit("outbox", { jobId: job.jobId, attempt: 0 });
  return answer;
}
