import { resolve } from "node:path";
import { z } from "zod";
import { environmentJson, policyJson, policyOf, readAddressPolicy } from "./config-values";

const seconds = (byDefault: number) => z.coerce.number().positive().default(byDefault);
const flag = (byDefault: boolean) =>
  z
    .enum(["true", "false", "1", "0"])
    .transform((value) => value === "true" || value === "1")
    .default(byDefault);

/** Every variable that the server reads: default, unit and meaning. */
const variables = {
  FORGE_HOME: z.string().default(".forge").describe("directory of all local state"),
  FORGE_HOST: z.string().default("127.0.0.1").describe("address to listen on"),
  FORGE_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .default(8080)
    .describe("HTTP port; 0 takes any free one"),
  FORGE_DATABASE_URL: z
    .string()
    .default("postgres://postgres@127.0.0.1:5432/forge")
    .describe("Postgres connection URL"),
  FORGE_DATABASE_POOL: z.coerce
    .number()
    .int()
    .positive()
    .default(20)
    .describe("most database connections of one process"),
  FORGE_DATABASE_TIMEOUT_S: seconds(4).describe("longest a statement may take, in seconds"),
  FORGE_STORE_DIR: z
    .string()
    .optional()
    .describe("directory of the local object store; default FORGE_HOME/store"),
  FORGE_LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("least severe log line to write"),
  FORGE_TASK_QUEUE: z.string().default("forge").describe("Temporal task queue"),
  TEMPORAL_ADDRESS: z.string().default("127.0.0.1:7233").describe("Temporal frontend, host:port"),
  TEMPORAL_NAMESPACE: z.string().default("default").describe("Temporal namespace"),
  FORGE_HEARTBEAT_INTERVAL_S: seconds(5).describe("interval told to agents, in seconds"),
  FORGE_HEARTBEAT_TIMEOUT_S: seconds(30).describe("a worker silent for longer is dead, in seconds"),
  FORGE_ASSIGNMENT_TIMEOUT_S: seconds(15).describe(
    "an assignment not fetched for longer goes back to the queue, in seconds",
  ),
  FORGE_JOB_TIMEOUT_S: z.coerce
    .number()
    .int()
    .positive()
    .default(7 * 86_400)
    .describe("longest an attempt may run where its job doesn't say, in seconds"),
  FORGE_CANCEL_GRACE_S: seconds(20).describe(
    "a worker that still holds its cancelled job for longer loses it, in seconds",
  ),
  FORGE_DEAF_AFTER_S: seconds(180).describe(
    "an idle worker that heartbeats but has not asked for longer is deaf, in seconds",
  ),
  FORGE_BILL_CANCELLED: flag(false).describe("whether a cancelled job's usage is billed"),
  FORGE_PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("where machines that are set up over SSH reach this API"),
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
    .transform(readAddressPolicy)
    .describe(
      "networks that SSH may connect to, comma-separated, like 10.0.0.0/8; without it all but this " +
        "machine and its link",
    ),
  FORGE_COMPUTE_REPOSITORY: z
    .string()
    .regex(/^[^-\s]\S*$/)
    .optional()
    .describe("git URL that workers set up over SSH fetch agent and handlers from"),
  FORGE_COMPUTE_REF: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/)
    .default("main")
    .describe("its branch, tag or commit"),
  FORGE_BOOTSTRAP_DIR: z
    .string()
    .regex(/^[A-Za-z0-9._/][A-Za-z0-9._/-]{0,199}$/)
    .default(".forge-worker")
    .describe("directory on such a worker, from its user's home"),
  FORGE_MAX_BOOTSTRAPS_PER_TENANT: z.coerce
    .number()
    .int()
    .positive()
    .default(10)
    .describe("workers of one tenant that may be set up at once"),
  FORGE_BOOTSTRAP_READY_S: seconds(120).describe(
    "an agent that was just started there must be heard within, in seconds",
  ),
  FORGE_BOOTSTRAP_ENV: environmentJson.describe(
    "further environment variables of such a worker's agent, as a JSON object",
  ),
  FORGE_JOB_POLICY: policyJson.describe(
    'what jobs of a type need, as JSON: {"train": {"gpu": 1, "gpu_type": "A100", "memory_gb": 40, ' +
      '"tags": ["eu"], "timeout_s": 86400}}; over the specification\'s rules',
  ),
  FORGE_RECONCILE_AFTER_S: seconds(60).describe(
    "an unfinished job that stood still for longer is compared with Temporal, in seconds",
  ),
  FORGE_TRAIN_NEEDS_GPU: flag(true).describe("whether train jobs run on GPU workers only"),
  FORGE_DEFAULT_TEACHER: z
    .string()
    .default("default-teacher")
    .describe("teacher of a generate job that names only a domain"),
  FORGE_MAX_BODY_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(1024 * 1024)
    .describe("largest request body, in bytes"),
  FORGE_REQUEST_TIMEOUT_S: seconds(30).describe(
    "a request that has not arrived by then is refused; an upload, one that stands still, in seconds",
  ),
  FORGE_RATE_LIMIT_PER_MINUTE: z.coerce
    .number()
    .int()
    .positive()
    .default(6_000)
    .describe("requests a user key may make in a minute"),
  FORGE_RATE_LIMIT_BURST: z.coerce
    .number()
    .int()
    .positive()
    .default(1_000)
    .describe("requests a user key may make at once, after a pause"),
  FORGE_MAX_PARKED_PER_USER_KEY: z.coerce
    .number()
    .int()
    .positive()
    .default(100)
    .describe("waiting requests (polls, streams) a user key may have in one process"),
  FORGE_MAX_PARKED_PER_WORKER_KEY: z.coerce
    .number()
    .int()
    .positive()
    .default(10_000)
    .describe("the same for a worker or admin key"),
  FORGE_MAX_POLL_S: seconds(50).describe("longest a worker's poll stays parked, in seconds"),
  FORGE_MAX_STREAM_S: seconds(3600).describe(
    "a stream of events is ended then, and its client goes on with another, in seconds",
  ),
  FORGE_CORS_ORIGINS: z
    .string()
    .optional()
    .describe("origins whose pages may call the API from a browser, separated by commas"),
  FORGE_STRICT_REFERENCES: flag(false).describe(
    "whether a dataset_id or checkpoint_id that is not the tenant's is refused",
  ),
  FORGE_MAX_JSON_DEPTH: z.coerce
    .number()
    .int()
    .positive()
    .default(32)
    .describe("deepest nesting of a request body"),
  FORGE_MAX_LOG_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(64 * 1024 * 1024)
    .describe("largest log of an attempt, in bytes"),
  FORGE_MAX_RESULT_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(256 * 1024)
    .describe("largest job result, in bytes"),
};

/** Read by the embedded stack and the demo, so known here too. */
const STACK_VARIABLES = ["FORGE_AGENTS", "FORGE_CACHE_DIR", "FORGE_TORCH"];

const schema = z.object(variables).transform((env) => ({
  home: resolve(env.FORGE_HOME),
  http: {
    /** Where workers reach the API: other machines, so nothing that could be guessed. */
    publicUrl: env.FORGE_PUBLIC_URL?.replace(/\/$/, ""),
    host: env.FORGE_HOST,
    port: env.FORGE_PORT,
    maxBodyBytes: env.FORGE_MAX_BODY_BYTES,
    maxJsonDepth: env.FORGE_MAX_JSON_DEPTH,
    requestTimeoutS: env.FORGE_REQUEST_TIMEOUT_S,
    rateLimit: {
      perMinute: env.FORGE_RATE_LIMIT_PER_MINUTE,
      burst: env.FORGE_RATE_LIMIT_BURST,
    },
    maxPollS: env.FORGE_MAX_POLL_S,
    maxStreamS: env.FORGE_MAX_STREAM_S,
    maxParked: {
      user: env.FORGE_MAX_PARKED_PER_USER_KEY,
      worker: env.FORGE_MAX_PARKED_PER_WORKER_KEY,
      admin: env.FORGE_MAX_PARKED_PER_WORKER_KEY,
    },
    corsOrigins: (env.FORGE_CORS_ORIGINS ?? "")
      .split(",")
      .map((origin) => origin.trim())
      .filter((origin) => origin !== ""),
  },
  database: {
    url: env.FORGE_DATABASE_URL,
    poolSize: env.FORGE_DATABASE_POOL,
    timeoutMs: env.FORGE_DATABASE_TIMEOUT_S * 1000,
  },
  storeDir: resolve(env.FORGE_STORE_DIR ?? `${env.FORGE_HOME}/store`),
  logLevel: env.FORGE_LOG_LEVEL,
  temporal: {
    address: env.TEMPORAL_ADDRESS,
    namespace: env.TEMPORAL_NAMESPACE,
    taskQueue: env.FORGE_TASK_QUEUE,
  },
  fleet: {
    heartbeatIntervalS: env.FORGE_HEARTBEAT_INTERVAL_S,
    heartbeatTimeoutS: env.FORGE_HEARTBEAT_TIMEOUT_S,
    assignmentTimeoutS: env.FORGE_ASSIGNMENT_TIMEOUT_S,
    deafAfterS: env.FORGE_DEAF_AFTER_S,
  },
  jobs: {
    timeoutS: env.FORGE_JOB_TIMEOUT_S,
    defaultTeacher: env.FORGE_DEFAULT_TEACHER,
    maxResultBytes: env.FORGE_MAX_RESULT_BYTES,
    maxLogBytes: env.FORGE_MAX_LOG_BYTES,
    policy: policyOf(env.FORGE_JOB_POLICY, env.FORGE_TRAIN_NEEDS_GPU),
    cancelGraceS: env.FORGE_CANCEL_GRACE_S,
    billsCancelled: env.FORGE_BILL_CANCELLED,
    strictReferences: env.FORGE_STRICT_REFERENCES,
  },
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
  reconcileAfterS: env.FORGE_RECONCILE_AFTER_S,
}));

export type Config = z.output<typeof schema>;

export interface LoadedConfig {
  config: Config;
  /** Names that begin with FORGE_ and mean nothing: misspelt, most likely. */
  unknown: string[];
}

/** Environment → configuration. Throws one Error that names every bad variable. */
export function loadConfig(env: NodeJS.ProcessEnv = process.env): LoadedConfig {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(set);
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `  ${issue.path.join(".")}: ${issue.message}`);
    throw new Error(`bad configuration\n${lines.join("\n")}`);
  }
  const known = new Set([...Object.keys(variables), ...STACK_VARIABLES]);
  const unknown = Object.keys(env).filter((name) => name.startsWith("FORGE_") && !known.has(name));
  return { config: parsed.data, unknown };
}

/** One line a variable, for `forge-server config`. */
export function describeVariables(): string[] {
  return Object.entries(variables).map(([name, variable]) => {
    const byDefault = variable.safeParse(undefined);
    const value = byDefault.success ? byDefault.data : undefined;
    const shown = typeof value === "object" ? JSON.stringify(value) : String(value ?? "none");
    return `${name}  ${variable.description ?? ""} (default ${shown})`;
  });
}
