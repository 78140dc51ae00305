import type { Outcome } from "../../core/jobs/states";
import type { Queryable } from "../../platform/postgres/pool";
import type { OutboxRow } from "../../platform/signals";
import { lockWorker, type WorkerRow } from "../fleet/workers";
import { type AttemptRow, findHeldAttempt, lockHeldAttempt, unassign } from "./attempts";
import { endAttempt } from "./end-attempt";
import { lockJob } from "./jobs";

/** An attempt as it was, and how it ended: a cancelled job's as `cancelled`. */
export type LostAttempt = AttemptRow & { outcome: Outcome };

/** What Temporal is to be told of it. */
export const owedFor = ({ job_id: jobId, attempt, outcome }: LostAttempt): OutboxRow => ({
  jobId,
  attempt,
  outcome,
});

/** What the worker holds changed while we took the locks: a race, so the transaction runs again. */
class HoldingChanged extends Error {
  override readonly name = "HoldingChanged";
  readonly code = "40001";
}

/**
 * Takes the worker's lock, last of the three, and makes sure that it holds what we think: the scheduler
 * may have assigned to it while we waited. Whatever writes its status comes after this, in a statement
 * of its own, whose snapshot is then no older than the lock.
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
 * Takes from a worker the attempt that it holds: one that runs is lost, one that was never fetched
 * goes back to the queue uncounted. Locks job, then attempt, then (by the caller) the worker.
 *
 * @param decide asked with job and attempt locked; false leaves everything as it is.
 * @returns the attempt that was lost, and the job that the worker keeps, if any.
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
  // It ended between the look and the lock, and the worker took up another job since.
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
