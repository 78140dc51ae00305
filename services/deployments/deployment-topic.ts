import type { Context } from "../context";
import type { Topic } from "../outbox/topic";
import { temporalReceiver } from "../temporal/temporal-receiver";
import { wakeDeployment } from "./deployment-workflows";
import { claimDueWakes, type DeploymentWake } from "./workflow-wakes";

/**
 * Starts and wakes the workflows of deployments. The reconciler finds workflows that are missing.
 */
export const deploymentTopic = (ctx: Context): Topic<DeploymentWake, string> => {
  const { pool, signals, config } = ctx;
  const { leaseS } = config.outbox;
  return {
    ...temporalReceiver(ctx),
    name: "deployment-starter",
    sweepMs: 1_000,
    subscribe(onCommit) {
      signals.on("deployment", onCommit);
      return () => signals.off("deployment", onCommit);
    },
    // Claim the wake here, so that no sweep claims it at the same time. The topics of jobs and
    // pipelines need not do this, because the transaction that adds their entry also leases the
    // entry.
    find: async (deploymentId) => (await claimDueWakes(pool, leaseS, 1, deploymentId)).at(0),
    claim: (limit) => claimDueWakes(pool, leaseS, limit),
    async deliver(wake) {
      await wakeDeployment(ctx, wake);
      return "delivered";
    },
    logFieldsOf: ({ deployment_id }) => ({ deployment_id }),
    callOf: () => "deployment",
  };
};
