import { InvalidRequest } from "./errors";

const SCHEMES = ["s3", "spaces", "forge", "file"] as const;

/**
 * Checks a dataset_uri's form: a known scheme, a bucket and a key, no way out of them. Whether it
 * can be read shows only when a worker reads it.
 */
export function checkDatasetUri(uri: string, artifactsRoot: string): void {
  const fault = faultOf(uri, artifactsRoot);
  if (fault) throw new InvalidRequest(`dataset_uri ${fault}`, "dataset_uri");
}

function faultOf(uri: string, artifactsRoot: string): string | undefined {
  const match = /^([a-z0-9]+):\/\/([^/?#]*)\/([^?#]*)$/.exec(uri);
  if (!match) return "is not of the form scheme://bucket/key";
  const [, scheme = "", bucket = "", key = ""] = match;
  if (!(SCHEMES as readonly string[]).includes(scheme)) {
    return `has scheme "${scheme}"; known are ${SCHEMES.join(", ")}`;
  }
  if (key === "") return "names no key";
  if (hasDotDot(key)) return 'may not contain ".."';
  if (scheme !== "file") return bucket === "" ? "names no bucket" : undefined;
  const root = artifactsRoot.replace(/\/+$/, "");
  const isBelowRoot = bucket === "" && `/${key}`.startsWith(`${root}/`);
  return isBelowRoot ? undefined : "with scheme file:// must lie below the artifacts directory";
}

function hasDotDot(key: string): boolean {
  try {
    return decodeURIComponent(key).split(/[/\\]/).includes("..");
  } catch {
    return true;
  }
}
