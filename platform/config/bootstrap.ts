import { resolve } from "node:path";
import { z } from "zod";
import { environmentJson, readAddressPolicy, seconds, wholeNumber } from "./values";

/** Settings for the setup of workers over SSH. */
export const BOOTSTRAP_VARIABLES = {
  FORGE_SSH_KEY_DIR: z
    .string()
    .optional()
    .describe(
      "directory of the SSH keys for setting up workers, with a folder for each user_id; an admin may " +
        "use all; default FORGE_HOME/ssh",
    ),
  FORGE_SSH_ALLOW: z
    .string()
    .optional()
    .transform((given, context) => readAddressPolicy(given, context))
    .describe(
      "networks that SSH may connect to, comma-separated, like 10.0.0.0/8; default: all except this " +
        "machine and its link; +127.0.0.0/8 allows a network in addition to the default",
    ),
  FORGE_COMPUTE_REPOSITORY: z
    .string()
    .regex(/^[^-\s]\S*$/)
    .optional()
    .describe(
      "git URL of the agent and the handlers for workers set up over SSH; default: the server uploads " +
        "those of its own release",
    ),
  FORGE_COMPUTE_REF: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/)
    .default("main")
    .describe(
      "full commit (pins what such workers run), tag or branch of FORGE_COMPUTE_REPOSITORY",
    ),
  FORGE_BOOTSTRAP_DIR: z
    .string()
    .regex(/^[A-Za-z0-9._/][A-Za-z0-9._/-]{0,199}$/)
    .default(".forge-worker")
    .describe("directory on a worker set up over SSH, relative to its user's home"),
  FORGE_MAX_BOOTSTRAPS_PER_TENANT: wholeNumber(10).describe(
    "workers of one tenant that may be set up at once",
  ),
  FORGE_BOOTSTRAP_READY_S: seconds(120).describe(
    "longest time from the agent's start on a worker set up over SSH to its first heartbeat, in seconds",
  ),
  FORGE_BOOTSTRAP_ENV: environmentJson.describe(
    "additional environment variables for the agents of workers set up over SSH, as a JSON object",
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
