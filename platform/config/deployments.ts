import { networkInterfaces } from "node:os";
import { z } from "zod";
import { AddressPolicy } from "../net/address-policy";
import { readPorts, ServingAddresses } from "../net/serving-addresses";
import { listOf, seconds, wholeNumber } from "./values";

/** By all of its addresses, not by its own name for itself alone. */
const thisMachine = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.map(({ address }) => address.split("%", 1).join()),
  );

/** What deployments and the proxy before them read of the environment. */
export const DEPLOYMENT_VARIABLES = {
  FORGE_DEPLOYMENT_STOP_GRACE_S: seconds(60).describe(
    "a server of a stopped deployment counts as ended after, in seconds",
  ),
  FORGE_DEPLOYMENT_MISSING_S: seconds(10).describe(
    "a model that its living worker does not name for longer is placed again, in seconds",
  ),
  FORGE_DEPLOYMENT_UNHEALTHY_S: seconds(60).describe(
    "a model that its worker calls unhealthy for longer is placed again, in seconds",
  ),
  FORGE_DEPLOYMENT_RETRY_S: seconds(10).describe(
    "after a placement that failed the next one waits, at first, in seconds; at most 30 times as long",
  ),
  FORGE_DEPLOYMENT_ALLOW: z
    .string()
    .optional()
    .transform((given, context) => {
      const networks = listOf(given);
      try {
        new AddressPolicy(networks);
        return networks;
      } catch (error) {
        context.addIssue((error as Error).message);
        return z.NEVER;
      }
    })
    .describe(
      "private networks, or this machine's, in which hosts that a worker's key names may serve models, " +
        "comma-separated, like 10.0.0.0/8",
    ),
  FORGE_DEPLOYMENT_PORTS: z
    .string()
    .default("443,1024-65535")
    .transform((given, context) => {
      const ranges = readPorts(given);
      if (ranges) return ranges;
      context.addIssue("must be ports and ranges of them, like 443,8000-8999");
      return z.NEVER;
    })
    .describe("ports that models may be served on, like 443,8000-8999"),
  FORGE_DEPLOYMENT_SAMPLE_S: seconds(10).describe(
    "how often the requests to deployments are added to their counts, in seconds",
  ),
  FORGE_PROXY_MAX_BODY_BYTES: wholeNumber(32 * 1024 * 1024).describe(
    "largest body of a request to a deployed model, in bytes",
  ),
  FORGE_PROXY_TIMEOUT_S: seconds(600).describe(
    "a deployed model that is silent for longer is given up, before its answer or in it, in seconds",
  ),
};

type Environment = {
  [Name in keyof typeof DEPLOYMENT_VARIABLES]: z.output<(typeof DEPLOYMENT_VARIABLES)[Name]>;
};

export const deploymentsOf = (env: Environment) => ({
  stopGraceS: env.FORGE_DEPLOYMENT_STOP_GRACE_S,
  missingS: env.FORGE_DEPLOYMENT_MISSING_S,
  unhealthyS: env.FORGE_DEPLOYMENT_UNHEALTHY_S,
  retryS: env.FORGE_DEPLOYMENT_RETRY_S,
  requestIntervalS: env.FORGE_DEPLOYMENT_SAMPLE_S,
  addresses: new ServingAddresses(
    env.FORGE_DEPLOYMENT_PORTS,
    env.FORGE_DEPLOYMENT_ALLOW,
    thisMachine(),
  ),
  proxy: {
    maxBodyBytes: env.FORGE_PROXY_MAX_BODY_BYTES,
    timeoutMs: env.FORGE_PROXY_TIMEOUT_S * 1000,
  },
});
