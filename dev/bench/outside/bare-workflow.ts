import { proxyActivities } from "@temporalio/workflow";

const { now } = proxyActivities<{ now(): Promise<number> }>({ startToCloseTimeout: "1m" });

/** The baseline for a job: a workflow with one activity. Returns the activity's start time. */
export async function bareWorkflow(): Promise<number> {
  return await now();
}
