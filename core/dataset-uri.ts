import { ARTIFACT_FORMS } from "./artifacts";
import { InvalidRequest } from "./errors";

const SCHEMES = ["s3", "spaces", "forge", "file"] as const;

/** One segment of a key; a dot segment is none, nor is one that hides a slash or a dot in an escape. */
const SEGMENT = String.raw`(?!\.{1,2}(?:/|$))(?:[^/?#%\\\x00-\x1f\x7f]|%(?!2[eEfF]|5[cC]|00)[0-9A-Fa-f]{2})+`;

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
  if (DATASET_URI.test(uri)) return undefined;
  const scheme = /^([a-z0-9]+):\/\//.exec(uri)?.[1];
  if (scheme === undefined) return "is not of the form scheme://bucket/key";
  if (!(SCHEMES as readonly string[]).includes(scheme)) {
    return `has scheme "${scheme}"; known are ${SCHEMES.join(", ")}`;
  }
  if (scheme !== "file") return 'must name a bucket and a key, with no "..", "?" or "#"';
  const path = FILE_URI.exec(uri)?.[1];
  const root = artifactsRoot.replace(/\/+$/, "");
  if (path?.startsWith(`${root}/`)) return undefined;
  return "with scheme file:// must lie below the artifacts directory";
}

/** Folders of the store that hold what belongs to somebody: one folder below them for each id. */
const OWNED_FOLDERS = new Set(
  Object.values(ARTIFACT_FORMS).map((form) => form.directory.replace("artifacts/", "")),
);

/**
 * Whose property a dataset_uri in our own store is: the artifact's id; `null` where it is nobody's to name
 * (a log). Undefined: it lies in no folder of ours, as somebody else's bucket does, or a sample.
 */
export function ownedThingIn(uri: string, artifactsRoot: string): string | null | undefined {
  const [, folder = "", id = ""] = storeKeyOf(uri, artifactsRoot)?.split("/") ?? [];
  if (folder.toLowerCase() === "logs") return null;
  return OWNED_FOLDERS.has(folder.toLowerCase()) ? id : undefined;
}

/** The key of a dataset_uri in our own store: escapes undone, empty segments left out. */
export function storeKeyOf(uri: string, artifactsRoot: string): string | undefined {
  if (faultOf(uri, artifactsRoot) !== undefined) return undefined;
  const root = artifactsRoot.replace(/\/+$/, "");
  const below = ["forge://artifacts/", `file://${root}/`].find((start) => uri.startsWith(start));
  if (below === undefined) return undefined;
  const segments = decodeURIComponent(uri.slice(below.length)).split("/");
  const key = ["artifacts", ...segments].filter((segment) => segment !== "").join("/");
  return uri.endsWith("/") ? `${key}/` : key;
}
