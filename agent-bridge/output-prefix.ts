import { ARTIFACT_FORMS, artifactPrefix } from "../core/artifacts/artifacts";
import { sparePrefix } from "../core/jobs/attempt-files";
import type { Dispatch } from "../services/jobs/dispatch";

type Making = Pick<Dispatch, "job_id" | "attempt" | "job_type" | "output_ids" | "deployment_id">;

/**
 * Where an attempt's artifact lies: its id was minted for it, so no other attempt writes there. A
 * deployment that is placed again has its files already, so that what comes is put aside.
 */
export function outputPrefix(job: Making): string | undefined {
  if (job.deployment_id !== null) return sparePrefix(job.job_id, job.attempt);
  const id = job.output_ids[ARTIFACT_FORMS[job.job_type].idField];
  return id === undefined ? undefined : artifactPrefix(job.job_type, id);
}
