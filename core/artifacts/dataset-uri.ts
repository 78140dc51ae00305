import { InvalidRequest } from "../errors";
import { ARTIFACT_FORMS } from "./artifacts";
import { DATASET_URI, URI_SEGMENT } from "./uri-pattern";

const SCHEMES = ["s3", "spaces", "forge", "file"] as const;

const FILE_URI = new RegExp(`^file://((?:/+${URI_SEGMENT})+)$`);

/** Checks the form of a dataset_uri (scheme, bucket, key, no path traversal), not its existence. */
export function checkDatasetUri(uri: string, artifactsRoot: string): void {
  const fault = faultOf(uri, artifactsRoot);
  if (fault) throw new InvalidRequest(`dataset_uri ${fault}`, "dataset_uri");
}

function faultOf(uri: string, artifactsRoot: string): string | undefined {
  if (!isDecodable(uri)) return "has a percent-escape that is not valid UTF-8";
  if (DATASET_URI.test(uri)) return undefined;
  const scheme = /^([a-z0-9]+):\/\//.exec(uri)?.[1];
  if (scheme === undefined) return "is not of the form scheme://bucket/key";
  if (!(SCHEMES as readonly string[]).includes(scheme)) {
    return `has unknown scheme "${scheme}"; use one of ${SCHEMES.join(", ")}`;
  }
  if (scheme !== "file") return 'must name a bucket and a key, with no "..", "?" or "#"';
  const path = FILE_URI.exec(uri)?.[1];
  const root = artifactsRoot.replace(/(?<!\/)\/+$/, "");
  if (path?.startsWith(`${root}/`)) return undefined;
  return "with scheme file:// must be below the artifacts directory";
}

function isDecodable(uri: string): boolean {
  try {
    decodeURIComponent(uri);
    return true;
  } catch {
    return false;
  }
}

/** An object or a folder in a bucket. */
export interface BucketLocation {
  scheme: string;
  bucket: string;
  /** Decoded, without empty segments. A folder ends with a slash. */
  key: string;
}

/** Parses an s3:// or spaces:// URI; undefined for other or malformed URIs. */
export function bucketLocationOf(uri: string): BucketLocation | undefined {
  if (!DATASET_URI.test(uri) || !isDecodable(uri)) return undefined;
  const [, scheme = "", bucket = "", path = ""] = /^(s3|spaces):\/\/([^/]+)\/(.+)$/.exec(uri) ?? [];
  return scheme === "" ? undefined : { scheme, bucket, key: keyOf(path) };
}

function keyOf(path: string): string {
  const segments = decodeURIComponent(path).split("/");
  const key = segments.filter((segment) => segment !== "").join("/");
  return path.endsWith("/") ? `${key}/` : key;
}

/**
 * Defines which URIs are in Forge's own store: all forge:// URIs, and all URIs below the directory
 * and the bucket that are given here.
 */
export interface OwnStore {
  /** file:// URIs below this directory are in the store. */
  artifactsRoot: string;
  /** `s3://bucket`, if the store is a bucket. */
  bucketUri?: string | undefined;
}

/**
 * Folders below `artifacts/` in the store. Each has one subfolder per artifact. The artifact's
 * storage id is the subfolder's name.
 */
const ARTIFACT_FOLDERS = new Set(
  Object.values(ARTIFACT_FORMS).map((form) => form.directory.replace("artifacts/", "")),
);

/**
 * The artifact id in a dataset_uri. Null: the URI names something in Forge's store that jobs must
 * not use, such as a log or a bill. Undefined: the URI is outside of Forge's store, or in a folder
 * that no tenant owns, such as `artifacts/samples/`.
 */
export function artifactIdIn(uri: string, own: OwnStore): string | null | undefined {
  const key = storeKeyOf(uri, own);
  if (key === undefined) return undefined;
  const [root = "", folder = "", id = ""] = key.split("/");
  if (root.toLowerCase() !== "artifacts" || folder.toLowerCase() === "logs") return null;
  return ARTIFACT_FOLDERS.has(folder.toLowerCase()) ? id : undefined;
}

/** A URI's decoded store key without empty segments; undefined if it is not in Forge's store. */
export function storeKeyOf(uri: string, own: OwnStore): string | undefined {
  if (faultOf(uri, own.artifactsRoot) !== undefined) return undefined;
  const root = own.artifactsRoot.replace(/(?<!\/)\/+$/, "");
  const prefixes: [uri: string, key: string][] = [
    ["forge://", ""],
    [`file://${root}/`, "artifacts/"],
    ...(own.bucketUri === undefined ? [] : [[`${own.bucketUri}/`, ""] as [string, string]]),
  ];
  const prefix = prefixes.find(([start]) => uri.startsWith(start));
  return prefix && keyOf(`${prefix[1]}${uri.slice(prefix[0].length)}`);
}
