import type { Job, JobFields } from "@forge/sdk";

/** A command that submits a small job. */
export const FIRST_JOB = "forge jobs submit generate --domain law --num-samples 20 --wait";

/**
 * A job's fields as a plain object. The query cache can compare plain objects, but not instances of
 * the SDK's class `Job`.
 */
export type JobData = JobFields;

export const plainJob = (job: Job): JobData => ({ ...job });

export const isFinished = ({ raw_status }: JobData): boolean =>
  raw_status === "completed" || raw_status === "failed";
