import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { LookupFunction } from "node:net";
import type { S3 } from "@aws-sdk/client-s3";
import { ConnectionRefused } from "../net/refused";
import { StoreAway } from "./object-store";

export interface S3Settings {
  bucket: string;
  /** None: Amazon's, by region. */
  endpoint?: string | undefined;
  region: string;
  /** None: whatever the machine is given by its environment or role. */
  credentials?: { accessKeyId: string; secretAccessKey: string } | undefined;
  /** Resolves names in place of the system's look-up. */
  lookup?: LookupFunction | undefined;
}

const CONNECT_TIMEOUT_MS = 3_000;
/** A connection on which nothing moves for longer is given up. */
const IDLE_TIMEOUT_MS = 30_000;
const MAX_SOCKETS = 64;

/** The SDK is large, so only a server with a bucket holds it in memory. */
export async function connectS3(settings: S3Settings): Promise<S3> {
  const { S3: Client } = await import("@aws-sdk/client-s3");
  const { endpoint, region, credentials, lookup } = settings;
  const agent = { keepAlive: true, maxSockets: MAX_SOCKETS, ...(lookup ? { lookup } : {}) };
  return new Client({
    region,
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    ...(credentials ? { credentials } : {}),
    maxAttempts: 3,
    // Where a checksum counts, it is ours, and SHA-256; not every store knows the SDK's own.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: IDLE_TIMEOUT_MS,
      httpAgent: new HttpAgent(agent),
      httpsAgent: new HttpsAgent(agent),
    },
  });
}

/** True for what S3 says of an object that is not there. */
export function isMissing(error: unknown): boolean {
  return statusOf(error) === 404;
}

/** The HTTP status that S3 refused with; undefined where there was no answer. */
export function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("$metadata" in error)) return undefined;
  return (error.$metadata as { httpStatusCode?: number }).httpStatusCode;
}

/** The answer; or what went wrong as `StoreAway`, unless it is that something is not there. */
export async function away<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw isMissing(error) ? error : asAway(error);
  }
}

/** S3's names for what went wrong carry no secret; its whole answer may. */
export function asAway(error: unknown): unknown {
  const isOurs = error instanceof StoreAway || error instanceof ConnectionRefused;
  if (!(error instanceof Error) || isOurs) return error;
  const status = statusOf(error);
  // Without an answer there is nothing of the store's in it, only what the network says.
  const answer = status === undefined ? `no answer: ${error.message}` : `HTTP ${status}`;
  return new StoreAway(`the bucket says ${error.name} (${answer})`, status, error.name);
}
