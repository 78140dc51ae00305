import type { ApiClient, Job } from "../../dev/api-client";
import { untilEnded } from "./jobs";

/** Submits a job and waits for its end. Throws with the job's error and log if it failed. */
export async function runJob(
  api: ApiClient,
  type: string,
  body: Record<string, unknown>,
  timeoutMs = 60_000,
): Promise<Job & { result: Record<string, unknown> }> {
  const { job_id } = await api.submit(type, body);
  const job = await untilEnded(api, job_id, timeoutMs);
  if (job.status !== "completed" || job.result === null) {
    throw new Error(`${type} ${job_id}: ${job.error}\n${await logOf(api, job_id)}`);
  }
  return { ...job, result: job.result };
}

export async function logOf(api: ApiClient, jobId: string): Promise<string> {
  const response = await fetch(`${api.baseUrl}/api/jobs/${jobId}/logs`, {
    headers: { "x-service-api-key": api.key },
  });
  return await response.text();
}
