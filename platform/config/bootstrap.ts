import { resolve } from "node:path";
import { z } from "zod";
import { environmentJson, readAddressPolicy, seconds, wholeNumber } from "./values";

/** What setting up workers over SSH reads of the environment. */
export const BOOTSTRAP_VARIABLES = {
  FORGE_SSH_KEY_DIR: z
    .string()
    .optional()
    .describe(
      "directory of the SSH keys to set up workers with: a folder for each user_id, and an admin may " +
        "use all; default FORGE_HOME/ssh",
    ),
  FORGE_SSH_ALLOW: z
    .string()
    .optional()
    .transform((given, context) => readAddressPolicy(given, context))
    .describe(
      "networks that SSH may connect to, comma-separated, like 10.0.0.0/8; without it all but this " +
        "machine and its link; +127.0.0.0/8 allows a network beside that",
    ),
  FORGE_COMPUTE_REPOSITORY: z
    .string()
    .regex(/^[^-\s]\S*$/)
    .optional()
    .describe(
      "git URL that workers set up over SSH fetch agent and handlers from; without it the server brings " +
        "those of its own release",
    ),
  FORGE_COMPUTE_REF: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/)
    .default("main")
    .describe("its commit in full (pins what runs on such workers), tag or branch"),
  FORGE_BOOTSTRAP_DIR: z
    .string()
    .regex(/^[A-Za-z0-9._/][A-Za-z0-9._/-]{0,199}$/)
    .default(".forge-worker")
    .describe("directory on such a worker, from its user's home"),
  FORGE_MAX_BOOTSTRAPS_PER_TENANT: wholeNumber(10).describe(
    "workers of one tenant that may be set up at once",
  ),
  FORGE_BOOTSTRAP_READY_S: seconds(120).describe(
    "an agent that was just started there must be heard within, in seconds",
  ),
  FORGE_BOOTSTRAP_ENV: environmentJson.describe(
    "further environment variables of such a worker's agent, as a JSON object",
  ),
};

type Environment = z.output<z.ZodObject<typeof BOOTSTRAP_VARIABLES>> & { FORGE_HOME: string };

export const bootstrapOf = (env: Environment) => ({
  ssh: {
    keyDir: resolve(env.FORGE_SSH_KEY_DIR ?? `${env.FORGE_HOME}/ssh`),
    addresses: env.FORGE_SSH_ALLOW,
  },
  bootstrap: {
    repository: env.FORGE_COMPUTE_REPOSITORY,
    repositoryRef: env.FORGE_COMPUTE_REF,
    remoteDir: env.FORGE_BOOTSTRAP_DIR,
    environment: env.FORGE_BOOTSTRAP_ENV,
    readyTimeoutS: env.FORGE_BOOTSTRAP_READY_S,
    maxPerTenant: env.FORGE_MAX_BOOTSTRAPS_PER_TENANT,
  },
});
