import { networkInterfaces } from "node:os";
import { z } from "zod";
import { AddressPolicy } from "../net/address-policy";
import { readPorts, ServingAddresses } from "../net/serving-addresses";
import { listOf, seconds, wholeNumber } from "./values";

/** Returns all addresses of this machine, including loopback addresses. */
const thisMachine = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.map(({ address }) => address.split("%", 1).join()),
  );

/** Settings for deployments and their proxy. */
export const DEPLOYMENT_VARIABLES = {
  FORGE_DEPLOYMENT_STOP_GRACE_S: seconds(60).describe(
    "time until a server of a stopped deployment counts as stopped, in seconds",
  ),
  FORGE_DEPLOYMENT_MISSING_S: seconds(10).describe(
    "a model that its live worker has not listed for longer is placed again, in seconds",
  ),
  FORGE_DEPLOYMENT_UNHEALTHY_S: seconds(60).describe(
    "a model that its worker has reported as unhealthy for longer is placed again, in seconds",
  ),
  FORGE_DEPLOYMENT_RETRY_S: seconds(10).describe(
    "first delay after a failed placement, in seconds; doubles up to 30 times as long",
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
      "private networks, or this machine's, in which hosts named by a worker's key may serve models; " +
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
    .describe("ports on which models may be served, like 443,8000-8999"),
  FORGE_DEPLOYMENT_SAMPLE_S: seconds(10).describe(
    "how often the counts of requests to deployments are written, in seconds",
  ),
  FORGE_PROXY_MAX_BODY_BYTES: wholeNumber(32 * 1024 * 1024).describe(
    "largest body of a request to a deployed model, in bytes",
  ),
  FORGE_PROXY_TIMEOUT_S: seconds(600).describe(
    "a request to a deployed model ends if its server neither reads nor writes for longer, in seconds",
  ),
};

type Environment = z.output<z.ZodObject<typeof DEPLOYMENT_VARIABLES>>;

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
