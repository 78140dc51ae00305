import type { JobEntryKey, OutcomeKey } from "../../platform/signals";
import { TEMPORAL_DEADLINE_MS } from "../../platform/temporal/client";
import type { Context } from "../context";
import type { Delivery, Topic } from "../outbox/topic";
import { temporalReceiver } from "../temporal/temporal-receiver";
import { attemptEndOf, findAttemptState } from "./attempts";
import { deliverOutcome, reconcileWorkflow, startJobWorkflow } from "./job-workflows";
import {
  claimJobEntries,
  findOutcome,
  type JobEntry,
  postponeJobEntry,
  removeJobEntries,
} from "./outbox-entries";

/**
 * The outbox topic of jobs: starts their workflows and delivers the outcomes of attempts to them.
 */
export const jobTopic = (ctx: Context): Topic<JobEntry, OutcomeKey> => ({
  ...temporalReceiver(ctx),
  name: "relay",
  sweepMs: 500,
  subscribe(onCommit) {
    const onEntry = (key: JobEntryKey): void =>
      // If `onCommit` gets a key, the courier delivers the entry at once. A start entry is due only
      // after some seconds, so do not pass its key. If the job's outcome is committed before then,
      // one call to Temporal delivers the start and the outcome.
      key.topic === "outcome" ? onCommit(key) : onCommit();
    ctx.signals.on("outbox", onEntry);
    return () => ctx.signals.off("outbox", onEntry);
  },
  find: ({ jobId, attempt }) => findOutcome(ctx.pool, jobId, attempt),
  claim: (limit) => claimJobEntries(ctx.pool, ctx.config.outbox.leaseS, limit),
  async deliver(entry) {
    if (entry.superseded) return "obsolete";
    const deadlineMs = Date.now() + TEMPORAL_DEADLINE_MS;
    return await ctx.temporal.withDeadline(deadlineMs, () => deliver(ctx, entry));
  },
  remove: (entries) => removeJobEntries(ctx.pool, entries),
  postpone: (entry, forS, why) => postponeJobEntry(ctx.pool, entry, forS, why),
  logFieldsOf: ({ job_id, topic, attempt, tries }) =>
    topic === "start" ? { job_id, topic, tries } : { job_id, topic, attempt, tries },
  callOf: ({ startIsPending }) => (startIsPending ? "start" : "outcome"),
});

async function deliver(ctx: Context, entry: JobEntry): Promise<Delivery> {
  const { job_id: jobId, topic, attempt, startIsPending } = entry;
  const started = startIsPending && (await startJobWorkflow(ctx, entry, "first"));
  if (topic === "start") return "delivered";
  // A timed-out or cancelled job is `failed` at once, but only its workflow bills it, and the
  // reconciler does not look for missing workflows of ended jobs. So the entry is kept, and its
  // delivery repeated, until the workflow writes the bill.
  const accepted = (hasFailed: boolean): Delivery => (hasFailed ? "accepted" : "delivered");
  // If this call started the workflow, the outcome needs no delivery: a new workflow reads the
  // first attempt, which has ended, before it waits. A cancel increments `tries`
  // (`insertOutcomeEntry`). If `tries` is not 0, the statement that read the entry may have read
  // the job as it was before a cancel, and the entry as it was after the cancel. `jobHasFailed` may
  // then be outdated, so the job's status is read below.
  if (started && entry.tries === 0) return accepted(entry.jobHasFailed);
  const state = await findAttemptState(ctx.pool, jobId, attempt);
  const end = state && attemptEndOf(state);
  if (!end) return "delivered";
  const hasFailed = state.job_status === "failed";
  if (started || (await deliverOutcome(ctx, jobId, attempt, end))) return accepted(hasFailed);
  // The workflow does not wait for the attempt yet, no longer waits for it, or is missing. Compare
  // the workflow with Postgres to find out which, and to repair it.
  if (await reconcileWorkflow(ctx, jobId)) return "delivered";
  return hasFailed ? "accepted" : "not_awaited";
}
