import type { AttemptEnd, ErrorCode } from "./states";

/** The name the job workflow is registered under; the relay starts it without importing it. */
export const JOB_WORKFLOW = "jobWorkflow";

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
