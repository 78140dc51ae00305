import type { AttemptEnd, ErrorCode, JobStatus } from "./states";

/** Registered workflow types. Callers start a workflow by name and don't import its code. */
export const JOB_WORKFLOW = "jobWorkflow";
/**
 * The workflow of a job that was submitted through the API. The job's row exists before this
 * workflow starts, and the first attempt may have ended already. A job of a pipeline step runs as
 * JOB_WORKFLOW, which inserts the row itself.
 */
export const SUBMITTED_JOB_WORKFLOW = "submittedJobWorkflow";

/**
 * Failure type of an activity: the database has lost a change that the workflow has already seen,
 * for example the end of an attempt. The workflow starts over from the rows in the database.
 */
export const DATABASE_BEHIND = "database-behind";

/** Search attributes of a job's workflow. Set at its start, never changed. */
export const SEARCH_ATTRIBUTES = { jobType: "ForgeJobType", userId: "ForgeUserId" } as const;

/** Payloads and results stay in Postgres, so Temporal's histories and UI never show them. */
export interface JobWorkflowInput {
  jobId: string;
  maxAttempts: number;
  requestId: string;
  /** The job is a pipeline step. The workflow inserts the job's row before anything else. */
  fromStep?: true;
}

/**
 * `AttemptEnd`: how the attempt ended. `JobEnd`: the job itself has ended, and nothing is left to
 * do. For example, it was cancelled between two attempts. The workflow then ends at once.
 */
export type AttemptReport = AttemptEnd | JobEnd;

export type JobEnd = { status: "completed" } | { status: "failed"; code: ErrorCode };

/** Undefined while the job has not ended. */
export function jobEndOf(status: JobStatus, code: ErrorCode | null): JobEnd | undefined {
  if (status === "completed") return { status };
  if (status === "failed") return { status, code: code ?? "job_error" };
  return undefined;
}
