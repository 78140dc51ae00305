import type { TenantScope } from "../../core/accounts/principal";
import { isFinal, isOwedAnotherAttempt } from "../../core/jobs/states";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import type { OutboxRow } from "../../platform/signals";
import type { Context } from "../context";
import { lockWorker, releaseUnfetched } from "../fleet/workers";
import { attemptEndOf, lockLatestAttempt } from "./attempts";
import { endAttempt } from "./end-attempt";
import { failJob, lockJob, requestCancel } from "./jobs";

type Cancelling =
  /** It is over; the attempt, if one was waiting, owes its end to Temporal. */
  | { answer: "ended"; owed?: OutboxRow }
  /** A worker runs it, and is told; it ends within the grace. */
  | { answer: "requested" }
  /** Its end is decided already, but not written yet. */
  | { answer: "finalising" }
  | { answer: "finished" }
  | { answer: "unknown" };

/**
 * Cancels a job in whatever state it is. What no worker runs ends here; what one runs ends with its
 * worker's word, or after the grace by the fleet monitor. Temporal is not asked: it follows.
 *
 * @param cancelledBy a key's name, or what cancels in a user's place: `pipeline`, `deployment`, `temporal`.
 */
export async function cancelJob(
  ctx: Context,
  jobId: string,
  tenantScope: TenantScope,
  cancelledBy: string,
): Promise<Cancelling["answer"]> {
  const { jobs, outbox } = ctx.config;
  const how = { cancelledBy, graceS: jobs.cancelGraceS, leaseS: outbox.firstLeaseS };
  const done = await transaction(ctx.pool, (db) => cancel(db, jobId, tenantScope, how));
  if (done.answer === "ended") {
    if (done.owed) ctx.signals.emit("outbox", done.owed);
    // A worker may be free by it.
    ctx.signals.queueChanged();
  }
  return done.answer;
}

async function cancel(
  db: Queryable,
  jobId: string,
  tenantScope: TenantScope,
  { cancelledBy, graceS, leaseS }: { cancelledBy: string; graceS: number; leaseS: number },
): Promise<Cancelling> {
  const job = await lockJob(db, jobId);
  if (!job || (tenantScope !== null && job.user_id !== tenantScope)) return { answer: "unknown" };
  if (isFinal(job.status)) return { answer: "finished" };
  const attempt = await lockLatestAttempt(db, jobId);
  if (!attempt) throw new Error(`${jobId} has no attempt`);

  const end = attemptEndOf(attempt);
  if (end) {
    if (!isOwedAnotherAttempt(job, end)) return { answer: "finalising" };
    await requestCancel(db, jobId, attempt.attempt, graceS, cancelledBy);
    await failJob(db, jobId, attempt.attempt, "cancelled", "cancelled before its next attempt");
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
  return { answer: "ended", owed: { jobId, attempt: attempt.attempt, outcome } };
}
