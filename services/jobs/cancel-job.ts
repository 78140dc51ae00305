import type { TenantScope } from "../../core/accounts/permissions";
import { willRetry } from "../../core/jobs/retry";
import { isFinal } from "../../core/jobs/states";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import type { OutcomeKey } from "../../platform/signals";
import type { Context } from "../context";
import { lockWorker, releaseUnfetched } from "../fleet/workers";
import { attemptEndOf, lockLatestAttempt } from "./attempts";
import { endAttempt } from "./end-attempt";
import { failJob } from "./fail-job";
import { lockJob, requestCancel } from "./jobs";
import { insertOutcomeEntry } from "./outbox-entries";

type CancelResult =
  /**
   * The job has ended. If this call also ended a queued or assigned attempt, `entry` is the outbox
   * entry of that attempt.
   */
  | { answer: "ended"; entry?: OutcomeKey }
  /** A worker that runs the job is asked to stop. The job ends within the grace period. */
  | { answer: "requested" }
  /** The outcome is already decided, but the final writes are not done yet. */
  | { answer: "finalising" }
  | { answer: "finished" }
  | { answer: "unknown" };

/**
 * Cancels a job in any state. A job that no worker runs ends at once. A running job ends when its
 * worker stops; after the grace period, the fleet monitor ends it. Does not call Temporal: the
 * outbox informs the workflow.
 *
 * @param cancelledBy the name of a key, or of the component that cancels: `pipeline`, `deployment`,
 *   `temporal`.
 */
export async function cancelJob(
  ctx: Context,
  jobId: string,
  tenantScope: TenantScope,
  cancelledBy: string,
): Promise<CancelResult["answer"]> {
  const { jobs, outbox } = ctx.config;
  const how = { cancelledBy, graceS: jobs.cancelGraceS, leaseS: outbox.firstLeaseS };
  const done = await transaction(ctx.pool, (db) => cancel(db, jobId, tenantScope, how));
  if (done.answer === "ended") {
    if (done.entry) ctx.signals.emit("outbox", done.entry);
    // The cancel may have freed a worker.
    ctx.signals.queueChanged();
  }
  return done.answer;
}

async function cancel(
  db: Queryable,
  jobId: string,
  tenantScope: TenantScope,
  { cancelledBy, graceS, leaseS }: { cancelledBy: string; graceS: number; leaseS: number },
): Promise<CancelResult> {
  const job = await lockJob(db, jobId);
  if (!job || (tenantScope !== null && job.user_id !== tenantScope)) return { answer: "unknown" };
  if (isFinal(job.status)) return { answer: "finished" };
  const attempt = await lockLatestAttempt(db, jobId);
  if (!attempt) throw new Error(`${jobId} has no attempt`);

  const end = attemptEndOf(attempt);
  if (end) {
    if (!willRetry(job, end)) return { answer: "finalising" };
    await requestCancel(db, jobId, attempt.attempt, graceS, cancelledBy);
    await failJob(db, jobId, attempt.attempt, "cancelled", "cancelled before its next attempt");
    await insertOutcomeEntry(db, jobId, attempt.attempt);
    return { answer: "ended" };
  }
  await requestCancel(db, jobId, attempt.attempt, graceS, cancelledBy);
  if (attempt.state === "running") return { answer: "requested" };
  const outcome = await endAttempt(db, { ...job, cancel_requested_at: new Date() }, attempt, {
    outcome: "cancelled",
    error: "cancelled before a worker had it",
    leaseS,
  });
  if (attempt.worker_id !== null) {
    await lockWorker(db, attempt.worker_id);
    await releaseUnfetched(db, attempt.worker_id);
  }
  const entry = { topic: "outcome", jobId, attempt: attempt.attempt, outcome } as const;
  return { answer: "ended", entry };
}
