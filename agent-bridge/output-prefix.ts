import { ARTIFACT_FORMS, artifactPrefix } from "../core/artifacts/artifacts";
import { discardedOutputPrefix } from "../core/jobs/attempt-files";
import type { Dispatch } from "../services/jobs/dispatch";

type ProducingJob = Pick<
  Dispatch,
  "job_id" | "attempt" | "job_type" | "output_ids" | "deployment_id"
>;

/**
 * The folder of an attempt's artifact; undefined if the attempt makes none. Only this attempt
 * writes there, because the folder's id was generated for it. A job with a `deployment_id` starts
 * another server of an existing deployment, whose files its first job has stored. So what this job
 * writes goes to a folder that is discarded.
 */
export function outputPrefix(job: ProducingJob): string | undefined {
  if (job.deployment_id !== null) return discardedOutputPrefix(job.job_id, job.attempt);
  const id = job.output_ids[ARTIFACT_FORMS[job.job_type].idField];
  return id === undefined ? undefined : artifactPrefix(job.job_type, id);
}
