import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  continueAsNew,
  log,
  proxyActivities,
} from "@temporalio/workflow";
import type { Activities } from "../activities";
import { willRetry } from "../core/jobs/retry";
import { type AttemptEnd, errorCodeOf } from "../core/jobs/states";
import {
  type AttemptReport,
  DATABASE_BEHIND,
  type JobEnd,
  type JobWorkflowInput,
} from "../core/jobs/workflow";
import { attemptActivityId } from "../core/workflow-ids";
import {
  localActivities,
  localFirst,
  regularActivities,
  unlimitedRetries,
} from "./activity-proxies";

/** Activities that may read files for hours. Missing heartbeats reveal that their process died. */
const longRunning = proxyActivities<Activities>({
  startToCloseTimeout: "24h",
  heartbeatTimeout: "30s",
  retry: unlimitedRetries,
});

/**
 * Runs one job, from its first attempt to its final status (spec.md 3.1).
 *
 *   attempt n ends as      then
 *   completed              writes the bill, then the manifest, then the registry entry together
 *                          with `completed`
 *   failed, retryable      queues attempt n+1; if none is left, writes `failed` (job_error)
 *   failed                 writes `failed` (job_error, or the attempt's own code)
 *   worker_lost            queues attempt n+1; if none is left, writes `failed` (worker_lost)
 *   timeout, cancelled     writes `failed` if the database does not have this status yet
 *
 * If the final writes keep failing, an operator can end the job as `failed` (forge-server jobs
 * end).
 *
 * A failed job also fails its workflow, so that operators find it by ExecutionStatus. Cancelling
 * the workflow in Temporal's UI has the same effect as a cancel request of the job's user. The
 * workflow still runs until the job has ended.
 */
export async function jobWorkflow(input: JobWorkflowInput): Promise<JobEnd> {
  return await runJob(input, awaitAttempt);
}

/**
 * Runs a job that was committed before its workflow started. Reads the first attempt before it
 * waits: if the job is short, the attempt has ended already, and the whole workflow takes only one
 * workflow task.
 */
export async function submittedJobWorkflow(input: JobWorkflowInput): Promise<JobEnd> {
  return await runJob(input, readFirstAttempt);
}

type AwaitAttempt = (job: AttemptInput) => Promise<AttemptReport>;

async function runJob(input: JobWorkflowInput, awaitReport: AwaitAttempt): Promise<JobEnd> {
  let forwarded = Promise.resolve();
  CancellationScope.current().cancelRequested.catch(() => {
    forwarded = forwardCancel(input);
  });
  const end = await CancellationScope.nonCancellable(async () => {
    try {
      return await runAttempts(input, awaitReport);
    } catch (error) {
      if (!isDatabaseBehind(error)) throw error;
      await forwarded;
      return await startOver(input);
    }
  });
  if (end.status === "failed") {
    throw ApplicationFailure.nonRetryable(`job failed: ${end.code}`, end.code);
  }
  return end;
}

const isDatabaseBehind = (error: unknown): boolean =>
  error instanceof ActivityFailure &&
  error.cause instanceof ApplicationFailure &&
  error.cause.type === DATABASE_BEHIND;

/**
 * Called if the database has lost a change (see DATABASE_BEHIND). Continues as a new run of this
 * workflow, from the database's current state. The workflow must not fail instead: an activity that
 * is still running could then complete the job, although the job's workflow has failed.
 *
 * The input of the new run has no `fromStep`, so the new run does not insert the job's row. If the
 * database has lost the row too, the new run fails.
 */
async function startOver({ jobId, maxAttempts, requestId }: JobWorkflowInput): Promise<never> {
  log.warn("the database has lost a change; starting over", {
    job_id: jobId,
    request_id: requestId,
  });
  return await continueAsNew<typeof jobWorkflow>({ jobId, maxAttempts, requestId });
}

async function forwardCancel({ jobId, requestId }: JobWorkflowInput): Promise<void> {
  log.info("cancelled through Temporal", { job_id: jobId, request_id: requestId });
  await CancellationScope.nonCancellable(() => regularActivities.cancelJob({ jobId }));
}

async function runAttempts(input: JobWorkflowInput, awaitReport: AwaitAttempt): Promise<JobEnd> {
  if (input.fromStep && !(await localFirst((activities) => activities.insertStepJob(input)))) {
    return { status: "failed", code: "cancelled" };
  }
  for (let attempt = 1; ; attempt++) {
    const job = { jobId: input.jobId, attempt, requestId: input.requestId };
    if (attempt > 1) await regularActivities.queueAttempt(job);
    const report = await awaitReport(job);
    if ("status" in report) return report;
    log.info("attempt ended", {
      job_id: job.jobId,
      attempt,
      request_id: job.requestId,
      outcome: report.outcome,
    });
    if (report.outcome === "completed") {
      return await finish(job);
    }
    if (!willRetry({ attempts: attempt, max_attempts: input.maxAttempts }, report)) {
      return await fail(job, report);
    }
  }
}

/**
 * Waits for an attempt to end. After the end, the courier (services/outbox) completes the activity
 * by its id, which is unique per attempt. If the attempt takes longer than the time-out, Temporal
 * retries the activity. Each try reads the attempt from the database again, because the process of
 * an earlier try may have been killed before it read the attempt.
 */
async function awaitAttempt(job: AttemptInput): Promise<AttemptReport> {
  const { awaitAttempt } = proxyActivities<Activities>({
    activityId: attemptActivityId(job.attempt),
    startToCloseTimeout: "1h",
    retry: unlimitedRetries,
    summary: `attempt ${job.attempt}`,
  });
  return await awaitAttempt(job);
}

async function readFirstAttempt(job: AttemptInput): Promise<AttemptReport> {
  if (job.attempt > 1) return await awaitAttempt(job);
  const report = await localActivities.lookAtAttempt(job).catch(() => null);
  return report ?? (await awaitAttempt(job));
}

type AttemptInput = Parameters<Activities["awaitAttempt"]>[0];

/**
 * Completes the job: first tries a local activity, then the `longRunning` one, because measuring
 * the output may take hours.
 */
async function finish(job: AttemptInput): Promise<JobEnd> {
  // Undefined in the replay of a history of an earlier release: `finishJob` returned nothing then.
  let end: JobEnd | undefined;
  try {
    end = await localActivities.finishJob(job);
  } catch {
    end = await longRunning.finishJob(job);
  }
  return end ?? { status: "completed" };
}

async function fail(job: AttemptInput, end: AttemptEnd): Promise<JobEnd> {
  const input = { ...job, code: errorCodeOf(end) };
  return await localFirst((activities) => activities.failJob(input));
}
