import { ApplicationFailure, CancellationScope, log, proxyActivities } from "@temporalio/workflow";
import type { Activities } from "../activities";
import { type AttemptEnd, deservesAnotherAttempt, errorCodeOf } from "../core/jobs/states";
import type { AttemptReport, JobEnd, JobWorkflowInput } from "../core/jobs/workflow";
import { attemptActivityId } from "../core/workflow-ids";
import { quick, regular, reliably, untilItWorks } from "./reliably";

/** Files may have to be read for hours; a process that dies meanwhile shows by its silence. */
const unhurried = proxyActivities<Activities>({
  startToCloseTimeout: "24h",
  heartbeatTimeout: "30s",
  retry: untilItWorks,
});

/**
 * One job, from its first attempt to its one end (spec.md 3.1).
 *
 *   attempt n ends as      then
 *   completed              bill, then manifest, registry and `completed` as the last write
 *   failed, retryable      attempt n+1 while there are any, else `failed` (job_error)
 *   failed                 `failed` (job_error, or the code that came with it)
 *   worker_lost            attempt n+1 while there are any, else `failed` (worker_lost)
 *   timeout, cancelled     `failed` is written already; this only makes sure of it
 *
 * Where the final writes can't be done, an operator may end the job `failed` (forge-server jobs end).
 *
 * A failed job's execution fails too, so that an operator finds it by ExecutionStatus. A cancel pressed
 * in Temporal's UI is handed on as the job's own, and does nothing else here: how the job ends, and
 * when its worker is free, is decided where every cancel is.
 */
export async function jobWorkflow(input: JobWorkflowInput): Promise<JobEnd> {
  return await runJob(input, awaitAttempt);
}

/**
 * The same for a job whose workflow starts after it was submitted. Looks at the first attempt before it
 * waits for it: a short job has ended by then, and its whole execution is one workflow task.
 */
export async function submittedJobWorkflow(input: JobWorkflowInput): Promise<JobEnd> {
  return await runJob(input, lookAtFirstAttempt);
}

type AwaitAttempt = (job: AttemptInput) => Promise<AttemptReport>;

async function runJob(input: JobWorkflowInput, awaitOne: AwaitAttempt): Promise<JobEnd> {
  CancellationScope.current().cancelRequested.catch(() => handOnCancel(input));
  const end = await CancellationScope.nonCancellable(() => runToItsEnd(input, awaitOne));
  if (end.status === "failed") {
    throw ApplicationFailure.nonRetryable(`job failed: ${end.code}`, end.code);
  }
  return end;
}

async function handOnCancel({ jobId, requestId }: JobWorkflowInput): Promise<void> {
  log.info("cancelled through Temporal", { job_id: jobId, request_id: requestId });
  await CancellationScope.nonCancellable(() => regular.cancelJob({ jobId }));
}

async function runToItsEnd(input: JobWorkflowInput, awaitOne: AwaitAttempt): Promise<JobEnd> {
  if (input.fromStep && !(await reliably((activities) => activities.insertStepJob(input)))) {
    return { status: "failed", code: "cancelled" };
  }
  for (let attempt = 1; ; attempt++) {
    const job = { jobId: input.jobId, attempt, requestId: input.requestId };
    if (attempt > 1) await regular.queueAttempt(job);
    const report = await awaitOne(job);
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
    if (!deservesAnotherAttempt(report) || attempt >= input.maxAttempts) {
      return await fail(job, report);
    }
  }
}

/**
 * Completed from outside, by an id of its own. A queue may be long, so it is begun again for as long as it
 * takes, and looks again each time: whoever was killed before it had looked once is not waited for.
 */
async function awaitAttempt(job: AttemptInput): Promise<AttemptReport> {
  const { awaitAttempt } = proxyActivities<Activities>({
    activityId: attemptActivityId(job.attempt),
    startToCloseTimeout: "1h",
    retry: untilItWorks,
    summary: `attempt ${job.attempt}`,
  });
  return await awaitAttempt(job);
}

async function lookAtFirstAttempt(job: AttemptInput): Promise<AttemptReport> {
  if (job.attempt > 1) return await awaitAttempt(job);
  const report = await quick.lookAtAttempt(job).catch(() => null);
  return report ?? (await awaitAttempt(job));
}

type AttemptInput = Parameters<Activities["awaitAttempt"]>[0];

/** The final writes: at once where that works, else as an activity that is tried until it does. */
async function finish(job: AttemptInput): Promise<JobEnd> {
  // In the histories of earlier releases it answers nothing.
  let end: JobEnd | undefined;
  try {
    end = await quick.finishJob(job);
  } catch {
    end = await unhurried.finishJob(job);
  }
  return end ?? { status: "completed" };
}

async function fail(job: AttemptInput, end: AttemptEnd): Promise<JobEnd> {
  const input = { ...job, code: errorCodeOf(end) };
  return await reliably((activities) => activities.failJob(input));
}
