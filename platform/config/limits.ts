import { z } from "zod";
import { recordOf } from "../record-of";
import { wholeNumber } from "./values";

/** Limits per tenant. */
export const LIMIT_VARIABLES = {
  FORGE_RATE_LIMIT_PER_MINUTE: wholeNumber(6_000).describe(
    "requests per minute of a tenant's user keys together",
  ),
  FORGE_RATE_LIMIT_BURST: wholeNumber(1_000).describe(
    "requests that a tenant's user keys together may send at once, after a pause",
  ),
  FORGE_MAX_WAITING_REQUESTS: wholeNumber(1_000).describe(
    "waiting requests of a tenant's users in one process: streams, downloads, requests to models",
  ),
  FORGE_MAX_WAITING_POLLS: wholeNumber(10_000).describe(
    "waiting requests of a tenant's workers in one process: polls, files",
  ),
  FORGE_MAX_OPEN_UPLOADS: wholeNumber(64).describe(
    "datasets that a tenant may upload at once in one process",
  ),
  FORGE_MAX_KEYS: wholeNumber(100).describe(
    "keys of a tenant that are neither revoked nor expired",
  ),
  FORGE_MAX_SESSIONS: wholeNumber(1_000).describe(
    "dashboard sessions of a tenant that have neither ended nor expired",
  ),
  FORGE_MAX_WORKERS: wholeNumber(10_000).describe(
    "workers of a tenant that are not decommissioned",
  ),
  FORGE_MAX_QUEUED_JOBS: wholeNumber(100_000).describe("jobs of a tenant that wait for a worker"),
  FORGE_MAX_QUEUED_SHAPES: wholeNumber(200).describe(
    "different requirements (GPU, memory, tags, job type) among a tenant's waiting jobs",
  ),
  FORGE_MAX_STORED_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .optional()
    .transform((bytes) => bytes ?? null)
    .describe("bytes of artifacts that a tenant may have in the store; unset: unlimited"),
};

type Environment = z.output<z.ZodObject<typeof LIMIT_VARIABLES>>;

/** Limits on current counts, such as open uploads, each with the variable that sets it. */
const CAPS = {
  waiting_requests: "FORGE_MAX_WAITING_REQUESTS",
  waiting_polls: "FORGE_MAX_WAITING_POLLS",
  open_uploads: "FORGE_MAX_OPEN_UPLOADS",
  keys: "FORGE_MAX_KEYS",
  sessions: "FORGE_MAX_SESSIONS",
  workers: "FORGE_MAX_WORKERS",
  queued_jobs: "FORGE_MAX_QUEUED_JOBS",
  queued_shapes: "FORGE_MAX_QUEUED_SHAPES",
  stored_bytes: "FORGE_MAX_STORED_BYTES",
} as const;

export type CapName = keyof typeof CAPS;

export interface Cap {
  name: CapName;
  variable: string;
  /** Null: unlimited. */
  limit: number | null;
}

export const limitsOf = (env: Environment) => ({
  rate: { perMinute: env.FORGE_RATE_LIMIT_PER_MINUTE, burst: env.FORGE_RATE_LIMIT_BURST },
  caps: recordOf<CapName, Cap>(Object.keys(CAPS) as CapName[], (name) => {
    const variable = CAPS[name];
    return { name, variable, limit: env[variable] };
  }),
});
