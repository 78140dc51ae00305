import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { TLSConfig } from "@temporalio/client";
import { z } from "zod";
import { namedFile } from "./files";
import { flag, seconds, wholeNumber } from "./values";

/** The TEMPORAL_… variables have the names of Temporal's own environment configuration. */
export const TEMPORAL_VARIABLES = {
  FORGE_TASK_QUEUE: z.string().default("forge").describe("Temporal task queue"),
  TEMPORAL_ADDRESS: z.string().default("127.0.0.1:7233").describe("Temporal frontend, host:port"),
  FORGE_TEMPORAL_UI_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("address of Temporal's UI for users; the dashboard links to workflows there"),
  TEMPORAL_NAMESPACE: z.string().default("default").describe("Temporal namespace"),
  TEMPORAL_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, "must be a key, without spaces")
    .optional()
    .describe("API key for Temporal; turns TLS on"),
  TEMPORAL_TLS: flag
    .optional()
    .describe("whether to use TLS; on by default if a certificate or an API key is set"),
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: namedFile.describe(
    "PEM file of the CA that signed Temporal's certificate; unset: the system's CAs",
  ),
  TEMPORAL_TLS_CLIENT_CERT_PATH: namedFile.describe("PEM file of the client certificate (mTLS)"),
  TEMPORAL_TLS_CLIENT_KEY_PATH: namedFile.describe("PEM file of the client certificate's key"),
  TEMPORAL_TLS_SERVER_NAME: z
    .string()
    .optional()
    .describe(
      "name that Temporal's certificate must have, if it is not the host of TEMPORAL_ADDRESS",
    ),
  FORGE_TEMPORAL_STICKY_S: seconds(10).describe(
    "a workflow task that its worker has not started for longer goes to any worker, in seconds",
  ),
  FORGE_TEMPORAL_TASK_S: seconds(10).describe(
    "a workflow task whose worker was killed goes to another one after this time, in seconds",
  ),
  FORGE_STUCK_AFTER_TRIES: wholeNumber(10).describe(
    "tries after which a failing write of a workflow is marked as stuck; ten tries take about a minute",
  ),
};

type Variables = z.output<z.ZodObject<typeof TEMPORAL_VARIABLES>>;

/** Options of every connection to Temporal, for clients and workers. */
interface TemporalConnectionConfig {
  address: string;
  tls: TLSConfig | false;
  apiKey?: string;
}

/**
 * Whether TLS can use these certificates and keys. Checked at startup, because Temporal's clients
 * would fail only at their first call, without naming the file.
 */
function isUsable(options: { ca?: Buffer | undefined; cert?: Buffer; key?: Buffer }): boolean {
  try {
    if (options.ca) new X509Certificate(options.ca);
    createSecureContext(options);
    return true;
  } catch {
    return false;
  }
}

export function temporalOf(env: Variables, context: z.core.$RefinementCtx) {
  const refuse = (name: keyof Variables, message: string): void => {
    context.issues.push({ code: "custom", path: [name], message, input: undefined });
  };
  const certificate = env.TEMPORAL_TLS_CLIENT_CERT_PATH;
  const key = env.TEMPORAL_TLS_CLIENT_KEY_PATH;
  if (certificate && !key) {
    refuse("TEMPORAL_TLS_CLIENT_KEY_PATH", "TEMPORAL_TLS_CLIENT_CERT_PATH needs it");
  }
  if (key && !certificate) {
    refuse("TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_KEY_PATH needs it");
  }
  const ca = env.TEMPORAL_TLS_SERVER_CA_CERT_PATH;
  if (!isUsable({ ca })) refuse("TEMPORAL_TLS_SERVER_CA_CERT_PATH", "is not a PEM certificate");
  if (certificate && key && !isUsable({ cert: certificate, key })) {
    refuse("TEMPORAL_TLS_CLIENT_CERT_PATH", "and TEMPORAL_TLS_CLIENT_KEY_PATH are not a PEM pair");
  }
  const serverName = env.TEMPORAL_TLS_SERVER_NAME;
  const apiKey = env.TEMPORAL_API_KEY;
  const needsTls = [ca, certificate, key, serverName, apiKey].some((value) => value !== undefined);
  if (env.TEMPORAL_TLS === false && needsTls) {
    refuse("TEMPORAL_TLS", "is false, but an API key or TEMPORAL_TLS_… is set, which need TLS");
  }
  const tls: TLSConfig = {
    ...(ca ? { serverRootCACertificate: ca } : {}),
    ...(certificate && key ? { clientCertPair: { crt: certificate, key } } : {}),
    ...(serverName ? { serverNameOverride: serverName } : {}),
  };
  const address = env.TEMPORAL_ADDRESS;
  const connection: TemporalConnectionConfig = {
    address,
    tls: (env.TEMPORAL_TLS ?? needsTls) ? tls : false,
    ...(apiKey ? { apiKey } : {}),
  };
  return {
    connection,
    address,
    /** Without a slash at the end. */
    uiUrl: env.FORGE_TEMPORAL_UI_URL?.replace(/\/$/, "") ?? null,
    namespace: env.TEMPORAL_NAMESPACE,
    taskQueue: env.FORGE_TASK_QUEUE,
    stickyS: env.FORGE_TEMPORAL_STICKY_S,
    taskTimeoutMs: env.FORGE_TEMPORAL_TASK_S * 1000,
    stuckAfterTries: env.FORGE_STUCK_AFTER_TRIES,
  };
}
