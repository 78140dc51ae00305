import type { AttemptEnd, ErrorCode } from "./states";

/** The names that job workflows are registered under; who starts one does not import it. */
export const JOB_WORKFLOW = "jobWorkflow";
/** For a job that is in the database before its workflow starts: its first attempt may have ended by then. */
export const SUBMITTED_JOB_WORKFLOW = "submittedJobWorkflow";

/** Search attributes of a job's workflow. Set at its start and never changed after. */
export const SEARCH_ATTRIBUTES = { jobType: "ForgeJobType", userId: "ForgeUserId" } as const;

/** Ids only: payloads and results stay in Postgres, out of histories and the Temporal UI. */
export interface JobWorkflowInput {
  jobId: string;
  maxAttempts: number;
  requestId: string;
  /** The job is a pipeline's step, and is written by this workflow before anything else. */
  fromStep?: true;
}

/** What an attempt's activity answers: how it ended, or that the whole job has ended already. */
export type AttemptReport = AttemptEnd | JobEnd;

export type JobEnd = { status: "completed" } | { status: "failed"; code: ErrorCode };
