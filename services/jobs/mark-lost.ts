import type { Outcome } from "../../core/jobs/states";
import type { Queryable } from "../../platform/postgres/pool";
import type { OutcomeKey } from "../../platform/signals";
import { lockWorker, type WorkerRow } from "../fleet/workers";
import { type AttemptRow, findHeldAttempt, lockHeldAttempt, unassign } from "./attempts";
import { endAttempt } from "./end-attempt";
import { lockJob } from "./jobs";

/** An attempt before it was lost, with its outcome: `cancelled` if its job is being cancelled. */
export type LostAttempt = AttemptRow & { outcome: Outcome };

/** The outbox entry of a lost attempt. */
export const outboxEntryOf = ({ job_id: jobId, attempt, outcome }: LostAttempt): OutcomeKey => ({
  topic: "outcome",
  jobId,
  attempt,
  outcome,
});

/** The worker's attempt changed while we took the locks. The code makes the transaction run again. */
class HoldingChanged extends Error {
  override readonly name = "HoldingChanged";
  readonly code = "40001";
}

/**
 * Locks the worker, last of the three locks, and checks that it still holds the expected job: the scheduler
 * may have assigned another one while we waited. Write the worker's status after this call in a separate
 * statement, so that its snapshot is not older than the lock.
 *
 * @throws HoldingChanged if the worker holds another job.
 */
export async function lockWorkerHolding(
  db: Queryable,
  workerId: string,
  expectedJobId: string | undefined,
): Promise<WorkerRow | undefined> {
  const worker = await lockWorker(db, workerId);
  const held = await findHeldAttempt(db, workerId);
  if (held?.job_id !== expectedJobId) throw new HoldingChanged();
  return worker;
}

/**
 * Takes the attempt that a worker holds away from it: marks a running attempt lost, and returns one that
 * was never fetched to the queue without counting it. Locks the job and the attempt; the caller then locks
 * the worker.
 *
 * @param decide called with the job and the attempt locked. If it returns false, nothing changes.
 * @returns the lost attempt, or the job that the worker keeps, if any.
 */
export async function markHeldAttemptLost(
  db: Queryable,
  { workerId, reason, leaseS }: { workerId: string; reason: string; leaseS: number },
  decide: (held: AttemptRow) => Promise<boolean>,
): Promise<{ lost?: LostAttempt; keeps?: string }> {
  const seen = await findHeldAttempt(db, workerId);
  if (!seen) return {};
  const job = await lockJob(db, seen.job_id);
  const held = await lockHeldAttempt(db, workerId);
  // The attempt ended before we had the lock, and the worker may have another job since.
  if (!job || held?.job_id !== seen.job_id) throw new HoldingChanged();
  if (!(await decide(held))) return { keeps: held.job_id };
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
