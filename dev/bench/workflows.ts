import { proxyActivities } from "@temporalio/workflow";

export { submittedJobWorkflow } from "../../workflows/job";

const { nothing } = proxyActivities<{ nothing(): Promise<void> }>({ startToCloseTimeout: "1m" });

/** The baseline for a job's workflow: one activity that does nothing. */
export async function bareWorkflow(): Promise<void> {
  await nothing();
}
