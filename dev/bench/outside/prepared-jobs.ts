import { ApiClient } from "../../api-client";
import { SUBMISSION } from "./jobs";
import type { Forge, Stage } from "./stage";

/**
 * Runs jobs to their end before a measurement, and returns their ids. If the jobs were left queued,
 * their workflows would start during the measurement.
 */
export async function completeJobs(
  { generator }: Stage,
  forge: Forge,
  count: number,
): Promise<string[]> {
  await generator.run("runJobs", { ...forge, workers: 16, jobs: count, inFlight: 16 });
  generator.takeMaxCpuShare();
  const user = new ApiClient(forge.url, forge.userKey);
  const { jobs } = await user.get<{ jobs: { job_id: string }[] }>(`/api/jobs?limit=${count}`);
  return jobs.map((job) => job.job_id);
}

/** Submits jobs to the peer in bare-express.ts, which only stores them. Returns their ids. */
export async function insertPeerJobs(expressUrl: string, count: number): Promise<string[]> {
  const peer = new ApiClient(expressUrl, "");
  const ids: string[] = [];
  while (ids.length < count) {
    ids.push((await peer.post<{ job_id: string }>("/jobs", SUBMISSION.body)).job_id);
  }
  return ids;
}
