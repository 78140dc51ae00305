import type { Context } from "../context";
import { observeDispatch } from "../jobs/dispatch";
import type { Assigned } from "./assignment";
import type { Started } from "./long-polls";

/**
 * Records assignments in the metrics, and wakes the workers' polls.
 *
 * @param started set if exactly one attempt was assigned and this attempt has already started for a
 *   waiting poll. This poll then gets the job.
 */
export function announceAssigned(
  { metrics, longPolls, signals }: Pick<Context, "metrics" | "longPolls" | "signals">,
  assigned: Pick<Assigned, "worker_id" | "job_type" | "waited_s">[],
  started?: Started,
): void {
  metrics.assigned.inc(assigned.length);
  for (const { job_type, waited_s } of assigned) {
    if (waited_s !== null) metrics.assignSeconds.observe({ job_type }, waited_s);
  }
  if (started) {
    observeDispatch(metrics, started.job);
    if (longPolls.deliver(started)) return;
  }
  const elsewhere = longPolls.wake(assigned.map((each) => each.worker_id));
  if (elsewhere.length > 0) signals.assigned(elsewhere);
}
