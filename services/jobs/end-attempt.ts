import { willRetry } from "../../core/jobs/retry";
import type { Outcome } from "../../core/jobs/states";
import type { Queryable } from "../../platform/postgres/pool";
import { type AttemptEnding, type AttemptRow, writeAttemptEnd } from "./attempts";
import { failJob } from "./fail-job";
import { type JobRow, returnToPending } from "./jobs";

export type AttemptEndDetails = Omit<AttemptEnding, "jobId" | "attempt" | "leaseS">;

/**
 * Ends a live attempt and updates its job without waiting for Temporal. A timeout or a cancel fails
 * the job. If the attempt was lost and the job has another attempt left, the job becomes `pending`.
 * An attempt of a job being cancelled always ends `cancelled`. The caller holds the locks of the
 * job and the attempt.
 */
export async function endAttempt(
  db: Queryable,
  job: JobRow,
  attempt: AttemptRow,
  { leaseS, ...how }: AttemptEndDetails & { leaseS: number },
): Promise<Outcome> {
  const ending = job.cancel_requested_at === null ? how : cancelled(attempt, how);
  await writeAttemptEnd(db, { ...ending, jobId: job.job_id, attempt: attempt.attempt, leaseS });
  switch (ending.outcome) {
    case "timeout":
    case "cancelled":
      await failJob(db, job.job_id, attempt.attempt, ending.outcome);
      break;
    case "worker_lost":
      if (willRetry(job, ending)) await returnToPending(db, job.job_id);
      break;
    case "completed":
    case "failed":
      break;
  }
  return ending.outcome;
}

/**
 * Changes the end of an attempt to `cancelled`. Drops the result. Keeps metrics and logs, and if
 * the attempt was running, its usage.
 */
function cancelled(attempt: AttemptRow, how: AttemptEndDetails): AttemptEndDetails {
  const { metrics = null, logsUri = null, usage = null, resultDigest = null } = how;
  const error = (how.outcome === "cancelled" ? how.error : null) ?? "cancelled";
  const base = { metrics, logsUri, outcome: "cancelled", error } as const;
  return attempt.state === "running" ? { ...base, usage, resultDigest } : base;
}
