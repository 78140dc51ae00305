import { ARTIFACT_FORMS, artifactPrefix } from "../core/artifacts/artifacts";
import { discardedOutputPrefix } from "../core/jobs/attempt-files";
import type { Dispatch } from "../services/jobs/dispatch";

type ProducingJob = Pick<
  Dispatch,
  "job_id" | "attempt" | "job_type" | "output_ids" | "deployment_id"
>;

/**
 * Returns the folder of an attempt's output; undefined if the attempt has no output. Only this
 * attempt writes there, because the folder's id was generated for it.
 *
 * A job with a `deployment_id` starts another server of an existing deployment. Its output goes to
 * a folder that is discarded, because the deployment's first job has already stored the
 * deployment's files.
 */
export function outputPrefix(job: ProducingJob): string | undefined {
  if (job.deployment_id !== null) return discardedOutputPrefix(job.job_id, job.attempt);
  const id = job.output_ids[ARTIFACT_FORMS[job.job_type].idField];
  return id === undefined ? undefined : artifactPrefix(job.job_type, id);
}
