import type { Context } from "../context";
import type { Topic } from "../outbox/topic";
import { temporalReceiver } from "../temporal/temporal-receiver";
import { wakeDeployment } from "./deployment-workflows";
import { claimDueWakes, type DeploymentWake } from "./workflow-wakes";

/** Starts and wakes the workflows of deployments. The reconciler finds workflows that are missing. */
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
    // Unlike in other topics, the transaction that requests a wake does not lease it. Claim it here, because a sweep
    // may claim it at the same time.
    find: async (deploymentId) => (await claimDueWakes(pool, leaseS, 1, deploymentId)).at(0),
    claim: (limit) => claimDueWakes(pool, leaseS, limit),
    async deliver(wake) {
      await wakeDeployment(ctx, wake);
      return "delivered";
    },
    factsOf: ({ deployment_id }) => ({ deployment_id }),
    callOf: () => "deployment",
  };
};
