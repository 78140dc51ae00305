import { proxyActivities } from "@temporalio/workflow";

const { now } = proxyActivities<{ now(): Promise<number> }>({ startToCloseTimeout: "1m" });

/** The peer of a job: a workflow with one activity, which returns its start time. */
export async function bareWorkflow(): Promise<number> {
  return await now();
}
