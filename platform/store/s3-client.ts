import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { LookupFunction } from "node:net";
import type { S3 } from "@aws-sdk/client-s3";
import { ConnectionRefused } from "../net/refused";
import { StoreUnavailable } from "./object-store";

export interface S3Settings {
  bucket: string;
  /** Default: Amazon S3 in the region. */
  endpoint?: string | undefined;
  region: string;
  /** Default: credentials of the machine's environment or role. */
  credentials?: { accessKeyId: string; secretAccessKey: string } | undefined;
  /** Replaces the system's name resolution. */
  lookup?: LookupFunction | undefined;
}

const CONNECT_TIMEOUT_MS = 3_000;
/** A connection is closed after this time without traffic. */
const IDLE_TIMEOUT_MS = 30_000;
const MAX_SOCKETS = 64;

/** Imports the SDK on demand: it is large, and only a server with a bucket needs it. */
export async function connectS3(settings: S3Settings): Promise<S3> {
  const { S3: Client } = await import("@aws-sdk/client-s3");
  const { endpoint, region, credentials, lookup } = settings;
  const agent = { keepAlive: true, maxSockets: MAX_SOCKETS, ...(lookup ? { lookup } : {}) };
  return new Client({
    region,
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    ...(credentials ? { credentials } : {}),
    maxAttempts: 3,
    // Our uploads set a SHA-256 themselves. Not every store supports the SDK's own checksums.
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

/** Whether S3 reported a missing object. */
export function isMissing(error: unknown): boolean {
  return statusOf(error) === 404;
}

/** The HTTP status of S3's error response; undefined: no response. */
export function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("$metadata" in error)) return undefined;
  return (error.$metadata as { httpStatusCode?: number }).httpStatusCode;
}

/**
 * Awaits a call. Converts its error with `asUnavailable`, unless the error is that an object is
 * missing.
 */
export async function orUnavailable<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw isMissing(error) ? error : asUnavailable(error);
  }
}

/**
 * Converts an error to StoreUnavailable. Keeps only the name and status of S3's error, because its
 * message may hold secrets.
 */
export function asUnavailable(error: unknown): unknown {
  const isOurs = error instanceof StoreUnavailable || error instanceof ConnectionRefused;
  if (!(error instanceof Error) || isOurs) return error;
  const status = statusOf(error);
  // Without a response the message comes from the network and holds no secret of the store.
  const answer = status === undefined ? `no answer: ${error.message}` : `HTTP ${status}`;
  return new StoreUnavailable(`the bucket says ${error.name} (${answer})`, status, error.name);
}
