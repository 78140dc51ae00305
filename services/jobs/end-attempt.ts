import type { Outcome } from "../../core/jobs/states";
import type { Queryable } from "../../platform/postgres/pool";
import { type AttemptEnding, type AttemptRow, writeAttemptEnd } from "./attempts";
import { failJob, type JobRow, returnToPending } from "./jobs";

export type Conclusion = Omit<AttemptEnding, "jobId" | "attempt" | "leaseS">;

/**
 * Ends a live attempt, and does to its job what follows from that at once, whatever Temporal does: a
 * timeout or cancel fails it, a lost attempt puts it back in the queue. A cancelled job's attempt ends
 * `cancelled`, whatever ended it. Call with the locks of job and attempt.
 */
export async function endAttempt(
  db: Queryable,
  job: JobRow,
  attempt: AttemptRow,
  { leaseS, ...how }: Conclusion & { leaseS: number },
): Promise<Outcome> {
  const ending = job.cancel_requested_at === null ? how : cancelled(attempt, how);
  await writeAttemptEnd(db, {
    ...ending,
    jobId: job.job_id,
    attempt: attempt.attempt,
    leaseS,
  });
  switch (ending.outcome) {
    case "timeout":
    case "cancelled":
      await failJob(db, job.job_id, attempt.attempt, ending.outcome);
      break;
    case "worker_lost":
      if (job.attempts < job.max_attempts) await returnToPending(db, job.job_id);
      break;
    case "completed":
    case "failed":
      break;
  }
  return ending.outcome;
}

/** What was used up to the cancel is kept. */
function cancelled(attempt: AttemptRow, how: Conclusion): Conclusion {
  const kept = { metrics: how.metrics ?? null, logsUri: how.logsUri ?? null };
  const said = how.outcome === "cancelled" ? how.error : undefined;
  const base = { ...kept, outcome: "cancelled", error: said ?? "cancelled" } as const;
  if (attempt.state !== "running") return base;
  return { ...base, usage: how.usage ?? null, resultDigest: how.resultDigest ?? null };
}
