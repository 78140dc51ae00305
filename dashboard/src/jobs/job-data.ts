import type { Job, JobFields } from "@forge/sdk";

/** A job's fields as plain data, which caches can compare. */
export type JobData = JobFields;

export const plainJob = (job: Job): JobData => ({ ...job });

export const isFinished = ({ raw_status }: JobData): boolean =>
  raw_status === "completed" || raw_status === "failed";
