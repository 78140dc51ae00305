import type { JobType } from "../core/job-types";
import type { Submission } from "../core/payloads";
import { estimateSubmission } from "../infra/billing/estimate-job";
import { requireBudget } from "../infra/billing/require-budget";
import type { Context } from "../infra/context";
import { insertJob } from "../infra/database/jobs";
import { findTerms } from "../infra/database/rate-cards";
import { type Creation, createOnce } from "../infra/http/idempotency";
import type { AnyCall } from "../infra/http/route";
import { requireRoomForBytes } from "../infra/limits/require-room";
import { checkNames, newJob } from "../infra/submissions/new-job";
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
  const { answer, isNew } = await (expected ? ctx.budgetTurns.take(userId, once) : once());
  if (!isNew) return answer;
  ctx.metrics.submitted.inc({ job_type: type });
  call.request.log.info({ job_id: job.jobId, job_type: type, user_id: userId }, "job accepted");
  ctx.signals.queueChanged();
  ctx.signals.emit("outbox", { jobId: job.jobId, attempt: 0 });
  return answer;
}
