import type { Outcome } from "../../core/jobs/states";
import type { Queryable } from "../../platform/postgres/pool";
import type { Context } from "../context";
import { type AttemptRow, findHeldAttempt, lockHeldAttempt, unassign } from "../jobs/attempts";
import { endAttempt } from "../jobs/end-attempt";
import { lockJob } from "../jobs/jobs";
import { lockWorker, type WorkerRow } from "./workers";

/**
 * The row of a lost attempt, read before the attempt was ended. Only `outcome` is the new value:
 * `worker_lost`, or `cancelled` if the job is being cancelled.
 */
export type LostAttempt = AttemptRow & { outcome: Outcome };

/**
 * Makes this process deliver the outbox entries of a loss at once: the entry of the lost attempt,
 * and those of the deployments that lost a placement. Call after the commit.
 */
export function announceLoss(
  { signals }: Context,
  { lost, deployments = [] }: { lost?: LostAttempt | undefined; deployments?: string[] },
): void {
  if (lost) {
    const { job_id: jobId, attempt, outcome } = lost;
    signals.emit("outbox", { topic: "outcome", jobId, attempt, outcome });
  }
  for (const id of deployments) signals.emit("deployment", id);
}

/**
 * Thrown if the worker's attempt changed while the locks were taken. The `code` is that of a
 * serialization failure, so `transaction` runs the work again.
 */
class HeldAttemptChanged extends Error {
  override readonly name = "HeldAttemptChanged";
  readonly code = "40001";
}

/**
 * Locks the worker, then checks which job the worker holds: the scheduler may have assigned a job
 * before the worker was locked. If the worker holds a job, the caller must have locked this job and
 * its attempt already. The caller must write the worker's status in a later statement, so that the
 * statement sees everything that was committed before the lock.
 *
 * @param expectedJobId undefined if the worker must hold no job.
 * @throws HeldAttemptChanged if the worker does not hold the expected job.
 */
export async function lockWorkerHolding(
  db: Queryable,
  workerId: string,
  expectedJobId: string | undefined,
): Promise<WorkerRow | undefined> {
  const worker = await lockWorker(db, workerId);
  const held = await findHeldAttempt(db, workerId);
  if (held?.job_id !== expectedJobId) throw new HeldAttemptChanged();
  return worker;
}

/**
 * Marks a worker's running attempt lost. An attempt that the worker never fetched returns to the
 * queue under the same number. Locks the job and the attempt; the caller then locks the worker.
 *
 * @param decide called with the job and the attempt locked. If it returns false, nothing changes.
 * @returns `lost`, the attempt that was marked lost, or `keptJobId`, the job that the worker still
 *   holds because `decide` returned false. In all other cases, both are undefined.
 */
export async function markHeldAttemptLost(
  db: Queryable,
  { workerId, reason, leaseS }: { workerId: string; reason: string; leaseS: number },
  decide: (held: AttemptRow) => Promise<boolean>,
): Promise<{ lost?: LostAttempt; keptJobId?: string }> {
  const seen = await findHeldAttempt(db, workerId);
  if (!seen) return {};
  const job = await lockJob(db, seen.job_id);
  const held = await lockHeldAttempt(db, workerId);
  // The attempt ended or was withdrawn before it was locked. The worker may have a new job.
  if (!job || held?.job_id !== seen.job_id) throw new HeldAttemptChanged();
  if (!(await decide(held))) return { keptJobId: held.job_id };
  if (held.state === "assigned") {
    await unassign(db, held.job_id, workerId);
    return {};
  }
  const outcome = await endAttempt(db, job, held, {
    outcome: "worker_lost",
    error: `attempt ${held.attempt} on worker ${workerId} was lost: ${reason}`,
    leaseS,
  });
  return { lost: { ...held, outcome } };
}
