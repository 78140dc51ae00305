import {
  ApplicationFailure,
  CancellationScope,
  proxyActivities,
  workflowInfo,
} from "@temporalio/workflow";
import type { Activities } from "../activities";
import {
  BOOTSTRAP_STEPS,
  type BootstrapEnd,
  type BootstrapInput,
  type BootstrapStep,
  bootstrapTaskQueue,
  NOT_RETRYABLE,
  STEP_TRIES,
} from "../core/fleet/bootstrap";

/** Unlimited retries: the bootstrap's result must be written, even after an outage of Postgres. */
const statusActivities = proxyActivities<Activities>({
  startToCloseTimeout: "1m",
  retry: { initialInterval: "500ms", maximumInterval: "10s" },
});

/**
 * Sets up a machine as a worker, step by step (spec.md 3.2). Temporal retries a step after a
 * transient error, and also if the process that runs the step dies. Temporal detects a dead process
 * by missing heartbeats.
 */
export async function bootstrapWorkflow(input: BootstrapInput): Promise<BootstrapEnd> {
  await statusActivities.beginBootstrap(input);
  for (const { name, does, timeoutS } of BOOTSTRAP_STEPS) {
    const activities = proxyActivities<Activities>({
      // A separate task queue, so that hanging machines don't block other activities.
      taskQueue: bootstrapTaskQueue(workflowInfo().taskQueue),
      activityId: `step-${name}`,
      summary: does,
      startToCloseTimeout: `${timeoutS}s`,
      heartbeatTimeout: "15s",
      retry: {
        initialInterval: "1s",
        backoffCoefficient: 2,
        maximumAttempts: STEP_TRIES,
        nonRetryableErrorTypes: [NOT_RETRYABLE],
      },
    });
    try {
      await doStep(activities, name, input);
    } catch {
      // This call must run even if the workflow was cancelled in Temporal's UI.
      await CancellationScope.nonCancellable(() =>
        statusActivities.failBootstrap({ ...input, step: name }),
      );
      throw ApplicationFailure.nonRetryable(`failed at step "${name}"`, "bootstrap_failed");
    }
  }
  return { status: "ready" };
}

function doStep(activities: Activities, step: BootstrapStep, input: BootstrapInput): Promise<void> {
  switch (step) {
    case "connect":
      return activities.connectToMachine(input);
    case "script":
      return activities.runScript(input);
    case "packages":
      return activities.installPackages(input);
    case "repository":
      return activities.fetchRepository(input);
    case "requirements":
      return activities.installRequirements(input);
    case "agent":
      return activities.startAgent(input);
    case "ready":
      return activities.markReady(input);
  }
}
