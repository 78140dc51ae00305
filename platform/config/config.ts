import { resolve } from "node:path";
import { z } from "zod";
import { BILLING_VARIABLES, billingExportOf } from "./billing";
import { BOOTSTRAP_VARIABLES, bootstrapOf } from "./bootstrap";
import { DATABASE_VARIABLES, databaseOf } from "./database";
import { DEPLOYMENT_VARIABLES, deploymentsOf } from "./deployments";
import { LIMIT_VARIABLES, limitsOf } from "./limits";
import { fileVariableOf, readSecretFiles, SECRET_VARIABLES } from "./secret-files";
import { STORE_VARIABLES, storeOf } from "./store";
import { TEMPORAL_VARIABLES, temporalOf } from "./temporal";
import {
  flag,
  listOf,
  policyJson,
  policyOf,
  seconds,
  wholeNumber,
  wholeNumberFrom,
} from "./values";

/** Every variable that the server reads: default, unit and meaning. */
const variables = {
  FORGE_HOME: z.string().default(".forge").describe("directory of all local state"),
  FORGE_HOST: z.string().default("127.0.0.1").describe("address to listen on"),
  FORGE_PORT: wholeNumberFrom(0, 8080, 65_535).describe("HTTP port; 0 takes any free one"),
  ...DATABASE_VARIABLES,
  ...STORE_VARIABLES,
  ...DEPLOYMENT_VARIABLES,
  FORGE_LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("least severe log line to write"),
  ...TEMPORAL_VARIABLES,
  FORGE_HEARTBEAT_INTERVAL_S: seconds(5).describe(
    "interval that agents use for heartbeats, in seconds",
  ),
  FORGE_HEARTBEAT_TIMEOUT_S: seconds(30).describe(
    "a worker without a heartbeat for longer is dead, in seconds",
  ),
  FORGE_ASSIGNMENT_TIMEOUT_S: seconds(15).describe(
    "an assignment that its worker has not fetched for longer goes back to the queue, in seconds",
  ),
  FORGE_JOB_TIMEOUT_S: wholeNumber(7 * 86_400).describe(
    "time-out of an attempt if its job sets none, in seconds",
  ),
  FORGE_JOB_METRICS_S: seconds(10).describe(
    "how often reported metrics of running jobs are stored, in seconds; at most every 10 s for a job",
  ),
  FORGE_WORKER_SAMPLE_S: seconds(60).describe(
    "how often a worker's utilisation and memory are stored, in seconds; at most one sample a minute",
  ),
  FORGE_CANCEL_GRACE_S: seconds(20).describe(
    "time that a worker has to stop a cancelled job before the job is taken from it, in seconds",
  ),
  FORGE_OFFER_S: wholeNumberFrom(0, 30, 3_600).describe(
    "a worker may be assigned a job without a poll for this long after it registered or its result was accepted, in seconds",
  ),
  FORGE_DEADLINE_GRACE_S: seconds(60).describe(
    "a job times out only after a server has been up for this long to accept its result, in seconds",
  ),
  FORGE_DEAF_AFTER_S: seconds(180).describe(
    "an idle worker that sends heartbeats but has not polled for longer is taken out of service, in seconds",
  ),
  ...BILLING_VARIABLES,
  FORGE_PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("URL of this API for machines that are set up over SSH"),
  ...BOOTSTRAP_VARIABLES,
  FORGE_RANKED_TENANTS: z
    .string()
    .optional()
    .describe(
      "tenants whose priorities count against other tenants' on shared workers, comma-separated; * for all",
    ),
  FORGE_JOB_POLICY: policyJson.describe(
    'requirements of each job type, as JSON: {"train": {"gpu": 1, "gpu_type": "A100", "memory_gb": 40, ' +
      '"tags": ["eu"], "timeout_s": 86400}}; they override the specification\'s rules',
  ),
  FORGE_SWEEP_AFTER_S: seconds(300).describe(
    "time after a job's end until orphaned files of its attempts are removed, in seconds",
  ),
  FORGE_SWEEP_INTERVAL_S: seconds(30).describe(
    "how often the sweeper looks for orphaned files, in seconds",
  ),
  FORGE_ARCHIVE_AFTER_S: seconds(86_400).describe(
    "time after a job's end until its rows move to the archive tables, in seconds; it stays visible everywhere",
  ),
  FORGE_RECONCILE_AFTER_S: seconds(25).describe(
    "an unfinished job, pipeline or deployment that has been unchanged for longer is compared with Temporal, in " +
      "seconds; with more than 25, a lost workflow may take more than a minute until it runs again",
  ),
  FORGE_WORKFLOW_START_S: seconds(3).describe(
    "a job's workflow starts when its first attempt has ended, or this long after its submission, in seconds; later if " +
      "more than five jobs a second are submitted",
  ),
  FORGE_OUTBOX_LEASE_S: seconds(10).describe(
    "another process may deliver an outbox entry that was claimed for longer, in seconds; must exceed the time of a call",
  ),
  FORGE_OUTBOX_FIRST_LEASE_S: seconds(5).describe(
    "any process may deliver a new outbox entry that its writer has not delivered for longer, in seconds",
  ),
  FORGE_TRAIN_NEEDS_GPU: flag.default(true).describe("whether train jobs run on GPU workers only"),
  FORGE_DEFAULT_TEACHER: z
    .string()
    .default("default-teacher")
    .describe("teacher of a generate job that sets only a domain"),
  FORGE_MAX_BODY_BYTES: wholeNumber(1024 * 1024).describe("largest request body, in bytes"),
  FORGE_REQUEST_TIMEOUT_S: seconds(30).describe(
    "a request that takes longer to arrive is refused, in seconds; an upload is refused if no data arrives for that long",
  ),
  ...LIMIT_VARIABLES,
  FORGE_TRUSTED_PROXIES: z
    .string()
    .optional()
    .describe(
      "networks of proxies whose X-Forwarded-For is trusted, comma-separated, like 10.0.0.0/8",
    ),
  FORGE_MAX_POLL_S: seconds(50).describe("longest wait of a worker's poll, in seconds"),
  FORGE_MAX_STREAM_S: seconds(3600).describe(
    "longest duration of an event stream, in seconds; its client then opens another",
  ),
  FORGE_CORS_ORIGINS: z
    .string()
    .optional()
    .describe("origins whose pages may call the API from a browser, comma-separated"),
  FORGE_STRICT_REFERENCES: flag
    .default(false)
    .describe("whether a dataset_id or checkpoint_id that is not the tenant's is refused"),
  FORGE_MAX_JSON_DEPTH: wholeNumber(32).describe("deepest nesting of a request body"),
  FORGE_MAX_LOG_BYTES: wholeNumber(64 * 1024 * 1024).describe(
    "largest log of an attempt, in bytes",
  ),
  FORGE_MAX_RESULT_BYTES: wholeNumber(256 * 1024).describe("largest job result, in bytes"),
  FORGE_PREVIEW_CACHE_BYTES: wholeNumber(4 * 1024 * 1024 * 1024).describe(
    "largest size of the preview cache for tables of other stores, below FORGE_HOME, in bytes",
  ),
  FORGE_PREVIEW_TIMEOUT_S: seconds(30).describe(
    "longest time to read a table, in seconds; counting its rows gets a second more for each 10 MB",
  ),
};

/**
 * Variables that the server does not read, but that may be set in its shell: they are for `npm
 * start` and for agents. They are listed so that they don't count as unknown.
 */
const OTHER_VARIABLES = [
  ...["FORGE_AGENTS", "FORGE_CACHE_DIR", "FORGE_TORCH"],
  ...["FORGE_AGENT_CONFIG", "FORGE_AGENT_STATE", "FORGE_GIT_COMMIT", "FORGE_MODELS_DIR"],
];

const schema = z.object(variables).transform((env, context) => ({
  home: resolve(env.FORGE_HOME),
  http: {
    /** The API's URL for workers on other machines. The server can't find it out itself. */
    publicUrl: env.FORGE_PUBLIC_URL?.replace(/\/$/, ""),
    host: env.FORGE_HOST,
    port: env.FORGE_PORT,
    maxBodyBytes: env.FORGE_MAX_BODY_BYTES,
    maxJsonDepth: env.FORGE_MAX_JSON_DEPTH,
    requestTimeoutS: env.FORGE_REQUEST_TIMEOUT_S,
    maxPollS: env.FORGE_MAX_POLL_S,
    maxStreamS: env.FORGE_MAX_STREAM_S,
    trustedProxies: listOf(env.FORGE_TRUSTED_PROXIES),
    corsOrigins: listOf(env.FORGE_CORS_ORIGINS),
  },
  limits: limitsOf(env),
  database: databaseOf(env),
  store: storeOf(env),
  deployments: deploymentsOf(env),
  /** The outcomes that are billed in addition to `completed`. */
  billing: { outcomes: env.FORGE_BILL_OUTCOMES },
  billingExport: billingExportOf(env, context),
  logLevel: env.FORGE_LOG_LEVEL,
  temporal: temporalOf(env, context),
  fleet: {
    heartbeatIntervalS: env.FORGE_HEARTBEAT_INTERVAL_S,
    heartbeatTimeoutS: env.FORGE_HEARTBEAT_TIMEOUT_S,
    assignmentTimeoutS: env.FORGE_ASSIGNMENT_TIMEOUT_S,
    pollTimeoutS: env.FORGE_DEAF_AFTER_S,
    sampleIntervalS: env.FORGE_WORKER_SAMPLE_S,
    offerS: env.FORGE_OFFER_S,
    deadlineGraceS: env.FORGE_DEADLINE_GRACE_S,
    rankedTenants: listOf(env.FORGE_RANKED_TENANTS),
  },
  jobs: {
    timeoutS: env.FORGE_JOB_TIMEOUT_S,
    defaultTeacher: env.FORGE_DEFAULT_TEACHER,
    maxResultBytes: env.FORGE_MAX_RESULT_BYTES,
    maxLogBytes: env.FORGE_MAX_LOG_BYTES,
    policy: policyOf(env.FORGE_JOB_POLICY, env.FORGE_TRAIN_NEEDS_GPU),
    metricsIntervalS: env.FORGE_JOB_METRICS_S,
    cancelGraceS: env.FORGE_CANCEL_GRACE_S,
    strictReferences: env.FORGE_STRICT_REFERENCES,
    archiveAfterS: env.FORGE_ARCHIVE_AFTER_S,
  },
  ...bootstrapOf(env),
  sweep: { afterS: env.FORGE_SWEEP_AFTER_S, intervalS: env.FORGE_SWEEP_INTERVAL_S },
  tables: {
    cacheBytes: env.FORGE_PREVIEW_CACHE_BYTES,
    timeoutMs: env.FORGE_PREVIEW_TIMEOUT_S * 1000,
  },
  outbox: {
    startAfterS: env.FORGE_WORKFLOW_START_S,
    leaseS: env.FORGE_OUTBOX_LEASE_S,
    firstLeaseS: env.FORGE_OUTBOX_FIRST_LEASE_S,
  },
  reconcileAfterS: env.FORGE_RECONCILE_AFTER_S,
}));

export type Config = z.output<typeof schema>;

export interface LoadedConfig {
  config: Config;
  /** Unknown names that begin with FORGE_: most likely misspelt. */
  unknown: string[];
}

/**
 * Reads the configuration from the environment. @throws one Error that names every bad variable.
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env): LoadedConfig {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const secrets = readSecretFiles(set);
  const parsed = schema.safeParse(secrets.env);
  const issues = parsed.error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  const errors = [...secrets.errors, ...(issues ?? [])];
  if (!parsed.success || errors.length > 0) {
    throw new Error(`bad configuration\n${errors.map((line) => `  ${line}`).join("\n")}`);
  }
  const files = [...SECRET_VARIABLES].map(fileVariableOf);
  const known = new Set([...Object.keys(variables), ...files, ...OTHER_VARIABLES]);
  const unknown = Object.keys(env).filter((name) => name.startsWith("FORGE_") && !known.has(name));
  return { config: parsed.data, unknown };
}

/** One line per variable, for `forge-server config`. */
export function describeVariables(): string[] {
  return Object.entries(variables).map(([name, variable]) => {
    const byDefault = variable.safeParse(undefined);
    const value = byDefault.success ? byDefault.data : undefined;
    const shown = typeof value === "object" ? JSON.stringify(value) : String(value ?? "none");
    const fromFile = SECRET_VARIABLES.has(name) ? `; or its file: ${fileVariableOf(name)}` : "";
    return `${name}  ${variable.description ?? ""}${fromFile} (default ${shown})`;
  });
}
