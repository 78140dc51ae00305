import { InvalidRequest } from "../errors";
import { ARTIFACT_FORMS } from "./artifacts";

const SCHEMES = ["s3", "spaces", "forge", "file"] as const;

const HEX = "[0-9A-Fa-f]";
const NEXT = `%[89AaBb]${HEX}`;

/** A character in escapes, by the bytes that UTF-8 has for it; none that would hide a slash or a dot. */
const ESCAPED = [
  `%(?!2[EeFf]|5[Cc]|00)[0-7]${HEX}`,
  `%(?:[Cc][2-9A-Fa-f]|[Dd]${HEX})${NEXT}`,
  `%[Ee](?:0%[AaBb]${HEX}|[1-9A-Ca-cEeFf]${NEXT}|[Dd]%[89]${HEX})${NEXT}`,
  `%[Ff](?:0%[9AaBb]${HEX}|[1-3]${NEXT}|4%8${HEX})${NEXT}${NEXT}`,
].join("|");

/** One segment of a key; a dot segment is none. */
const SEGMENT = String.raw`(?!\.{1,2}(?:/|$))(?:[^/?#%\\\x00-\x1f\x7f]|${ESCAPED})+`;

/** A bucket and a key in one of the object stores. */
export const DATASET_URI = new RegExp(
  `^(?:s3|spaces|forge)://[A-Za-z0-9][A-Za-z0-9._-]*(?:/+${SEGMENT})+/?$`,
);

const FILE_URI = new RegExp(`^file://((?:/+${SEGMENT})+)$`);

/**
 * Checks a dataset_uri's form: a known scheme, a bucket and a key, no way out of them. Whether it
 * can be read shows only when a worker reads it.
 */
export function checkDatasetUri(uri: string, artifactsRoot: string): void {
  const fault = faultOf(uri, artifactsRoot);
  if (fault) throw new InvalidRequest(`dataset_uri ${fault}`, "dataset_uri");
}

function faultOf(uri: string, artifactsRoot: string): string | undefined {
  if (!isDecodable(uri)) return "has an escape that is not of UTF-8 text";
  if (DATASET_URI.test(uri)) return undefined;
  const scheme = /^([a-z0-9]+):\/\//.exec(uri)?.[1];
  if (scheme === undefined) return "is not of the form scheme://bucket/key";
  if (!(SCHEMES as readonly string[]).includes(scheme)) {
    return `has scheme "${scheme}"; known are ${SCHEMES.join(", ")}`;
  }
  if (scheme !== "file") return 'must name a bucket and a key, with no "..", "?" or "#"';
  const path = FILE_URI.exec(uri)?.[1];
  const root = artifactsRoot.replace(/(?<!\/)\/+$/, "");
  if (path?.startsWith(`${root}/`)) return undefined;
  return "with scheme file:// must lie below the artifacts directory";
}

function isDecodable(uri: string): boolean {
  try {
    decodeURIComponent(uri);
    return true;
  } catch {
    return false;
  }
}

/** An object, or a folder of them, in somebody's bucket. */
export interface BucketPlace {
  scheme: string;
  bucket: string;
  /** Escapes undone, empty segments left out; ends with a slash: a folder. */
  key: string;
}

/** Where an s3:// or spaces:// URI leads; undefined for what is none, or is malformed. */
export function bucketPlaceOf(uri: string): BucketPlace | undefined {
  if (!DATASET_URI.test(uri) || !isDecodable(uri)) return undefined;
  const [, scheme = "", bucket = "", path = ""] = /^(s3|spaces):\/\/([^/]+)\/(.+)$/.exec(uri) ?? [];
  return scheme === "" ? undefined : { scheme, bucket, key: keyOf(path) };
}

function keyOf(path: string): string {
  const segments = decodeURIComponent(path).split("/");
  const key = segments.filter((segment) => segment !== "").join("/");
  return path.endsWith("/") ? `${key}/` : key;
}

/** How our own store may be named in a dataset_uri: as forge://, and in two more ways. */
export interface OwnStore {
  /** The directory that `file://` may name. */
  artifactsRoot: string;
  /** `s3://bucket`, where the store is a bucket. */
  bucketUri?: string | undefined;
}

/** Folders of the store that hold what belongs to somebody: one folder below them for each id. */
const OWNED_FOLDERS = new Set(
  Object.values(ARTIFACT_FORMS).map((form) => form.directory.replace("artifacts/", "")),
);

/**
 * Whose property a dataset_uri in our own store is: the artifact's id; `null` where it is nobody's to name
 * (a log, a bill). Undefined: it lies in no folder of ours, as somebody else's bucket does, or a sample.
 */
export function ownedThingIn(uri: string, own: OwnStore): string | null | undefined {
  const key = storeKeyOf(uri, own);
  if (key === undefined) return undefined;
  const [room = "", folder = "", id = ""] = key.split("/");
  if (room.toLowerCase() !== "artifacts" || folder.toLowerCase() === "logs") return null;
  return OWNED_FOLDERS.has(folder.toLowerCase()) ? id : undefined;
}

/** The key of a dataset_uri in our own store: escapes undone, empty segments left out. */
export function storeKeyOf(uri: string, own: OwnStore): string | undefined {
  if (faultOf(uri, own.artifactsRoot) !== undefined) return undefined;
  const root = own.artifactsRoot.replace(/(?<!\/)\/+$/, "");
  const start = [
    ["forge://", ""],
    [`file://${root}/`, "artifacts/"],
    ...(own.bucketUri === undefined ? [] : [[`${own.bucketUri}/`, ""]]),
  ].find(([beginning = ""]) => uri.startsWith(beginning));
  if (!start) return undefined;
  const [beginning = "", room = ""] = start;
  return keyOf(`${room}${uri.slice(beginning.length)}`);
}
