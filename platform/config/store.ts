import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { type AddressPolicy, NOT_PUBLIC } from "../net/address-policy";
import type { S3BucketSettings } from "../store/s3-bucket";
import { flag, readAddressPolicy, wholeNumberFrom } from "./values";

const STORE_URL = /^(s3|spaces):\/\/([a-z0-9][a-z0-9.-]{1,62})\/?$/;

const httpUrl = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/(?<!\/)\/+$/, ""));

const tenantBucket = z
  .strictObject({
    scheme: z.enum(["s3", "spaces"]).default("s3"),
    bucket: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/),
    endpoint: httpUrl.optional(),
    region: z.string().default("us-east-1"),
    access_key_id: z.string().min(1),
    secret_access_key: z.string().min(1),
  })
  .transform(({ access_key_id: accessKeyId, secret_access_key: secretAccessKey, ...bucket }) => ({
    ...bucket,
    credentials: { accessKeyId, secretAccessKey },
  }));

export type TenantBucket = z.output<typeof tenantBucket>;

/**
 * Reads the settings of tenants' buckets from a file. This keeps the buckets' secrets out of the
 * environment. Errors name a bad field, but not its value.
 */
const tenantStoresFile = z
  .string()
  .optional()
  .transform((path, context): Record<string, TenantBucket[]> => {
    if (path === undefined) return {};
    try {
      const parsed = tenantStores.safeParse(JSON.parse(readFileSync(path, "utf8")));
      if (parsed.success) return parsed.data;
      for (const { path: at, message } of parsed.error.issues) {
        context.addIssue(`${path}: ${at.join(".")}: ${message}`);
      }
    } catch (error) {
      const why = error instanceof SyntaxError ? "is not JSON" : (error as Error).message;
      context.addIssue(`${path}: ${why}`);
    }
    return z.NEVER;
  });

const tenantStores = z.record(z.string(), z.array(tenantBucket));

/**
 * Settings of the store of artifacts, logs and billing files. spec.md 4.6 names the variables for
 * credentials.
 */
export const STORE_VARIABLES = {
  FORGE_STORE_DIR: z
    .string()
    .optional()
    .describe("directory of the local object store; default FORGE_HOME/store"),
  FORGE_STORE_URL: z
    .string()
    .regex(STORE_URL, "must be s3://bucket or spaces://bucket")
    .optional()
    .describe("bucket to use instead of FORGE_STORE_DIR: s3://bucket or spaces://bucket"),
  S3_ENDPOINT: httpUrl.optional().describe("endpoint of an S3-compatible store; unset: Amazon's"),
  S3_REGION: z.string().default("us-east-1").describe("region of the S3 store"),
  S3_ACCESS_KEY_ID: z
    .string()
    .optional()
    .describe("access key of the S3 store; unset: the machine's role"),
  S3_SECRET_ACCESS_KEY: z.string().optional().describe("secret of S3_ACCESS_KEY_ID"),
  SPACES_ENDPOINT: httpUrl
    .default("https://nyc3.digitaloceanspaces.com")
    .describe("endpoint of DigitalOcean Spaces"),
  SPACES_REGION: z.string().default("nyc3").describe("region of the Spaces"),
  SPACES_KEY: z.string().optional().describe("access key of the Spaces"),
  SPACES_SECRET: z.string().optional().describe("secret of SPACES_KEY"),
  FORGE_TENANT_STORES_FILE: tenantStoresFile.describe(
    "JSON file of buckets that tenants' dataset_uris may name: {user_id: [{bucket, endpoint, region, " +
      "access_key_id, secret_access_key}]}",
  ),
  FORGE_TENANT_STORES_ALLOW: z
    .string()
    .optional()
    .transform((given, context) => readAddressPolicy(given, context, NOT_PUBLIC))
    .describe(
      "networks that tenants' buckets may be in, comma-separated; default: all public addresses",
    ),
  FORGE_SIGNED_URLS: flag
    .default(true)
    .describe("whether workers, and users on request, access a bucket directly with signed URLs"),
  FORGE_STORE_RESERVE_BYTES: wholeNumberFrom(0, 256 * 1024 * 1024).describe(
    "free space of a local store that uploads must leave for bills, manifests and logs, in bytes",
  ),
  FORGE_SIGNED_URL_TTL_S: wholeNumberFrom(60, 3600, 7 * 86_400).describe(
    "how long a signed URL is valid, in seconds",
  ),
};

export interface StoreConfig {
  /** Directory of the local store. `file://` URIs may name files below it. */
  directory: string;
  /** The bucket to use instead of the local store. */
  bucket?: S3BucketSettings & { scheme: "s3" | "spaces" };
  signsUrls: boolean;
  /** Free space that uploads must leave, in bytes. */
  reserveBytes: number;
  tenants: { buckets: Record<string, TenantBucket[]>; addresses: AddressPolicy };
}

type Variables = z.output<z.ZodObject<typeof STORE_VARIABLES>> & { FORGE_HOME: string };

export function storeOf(env: Variables): StoreConfig {
  const [, scheme, bucket] = STORE_URL.exec(env.FORGE_STORE_URL ?? "") ?? [];
  const directory = resolve(env.FORGE_STORE_DIR ?? `${env.FORGE_HOME}/store`);
  const { FORGE_TENANT_STORES_FILE: buckets, FORGE_TENANT_STORES_ALLOW: addresses } = env;
  const common = {
    directory,
    signsUrls: env.FORGE_SIGNED_URLS,
    reserveBytes: env.FORGE_STORE_RESERVE_BYTES,
    tenants: { buckets, addresses },
  };
  if (bucket === undefined) return common;
  const isSpaces = scheme === "spaces";
  const id = isSpaces ? env.SPACES_KEY : env.S3_ACCESS_KEY_ID;
  const secret = isSpaces ? env.SPACES_SECRET : env.S3_SECRET_ACCESS_KEY;
  return {
    ...common,
    bucket: {
      scheme: isSpaces ? "spaces" : "s3",
      bucket,
      endpoint: isSpaces ? env.SPACES_ENDPOINT : env.S3_ENDPOINT,
      region: isSpaces ? env.SPACES_REGION : env.S3_REGION,
      credentials: id && secret ? { accessKeyId: id, secretAccessKey: secret } : undefined,
      signedUrlTtlS: env.FORGE_SIGNED_URL_TTL_S,
    },
  };
}
