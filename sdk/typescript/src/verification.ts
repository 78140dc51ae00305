import { platform } from "#platform";
import { ForgeHTTPError, IntegrityError } from "./errors.ts";
import { segmentsOf } from "./paths.ts";
import { objectOf, parseJson } from "./retry-policy.ts";

/** The name of the manifest in its artifact's folder. */
export const MANIFEST_FILE = "manifest.json";

export interface ManifestFile {
  path: string;
  size_bytes: number;
  sha256: string;
}

export interface FileCheck {
  path: string;
  outcome: "ok" | "changed" | "size_differs" | "missing" | "extra";
  detail: string | null;
}

/** Called after each file is checked. */
export type OnCheck = (check: FileCheck) => void;

/** The result of comparing an artifact's files with its manifest. */
export interface Verification {
  artifact_id: string;
  ok: boolean;
  /** The manifest's `verified`. False: the control plane could not read some of the files. */
  verified: boolean;
  files: FileCheck[];
}

/**
 * Parses the field `files` of a manifest, or of the API's list of files. Validates the entries,
 * because other code relies on their paths and sizes.
 *
 * Throws ForgeHTTPError and UnsafePathError.
 */
export function filesOf(answer: object): ManifestFile[] {
  const { files = [] } = answer as { files?: unknown };
  if (!Array.isArray(files)) throw new ForgeHTTPError("files in the response is not a list");
  return files.map(fileOf);
}

function fileOf(value: unknown): ManifestFile {
  const { path, size_bytes, sha256 } = objectOf(value) ?? {};
  if (typeof path !== "string") throw new ForgeHTTPError("a file in the response has no path");
  segmentsOf(path);
  if (typeof size_bytes !== "number" || !Number.isSafeInteger(size_bytes) || size_bytes < 0) {
    throw new ForgeHTTPError(`size_bytes of ${path} is not a size`);
  }
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) {
    throw new ForgeHTTPError(`sha256 of ${path} is not a checksum`);
  }
  return { path, size_bytes, sha256 };
}

/** Yields the content and compares it with the manifest. Stops when the content is too long. */
async function* checked(
  file: ManifestFile,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, FileCheck, undefined> {
  const hash = platform.createHash();
  let size = 0;
  const differs = (detail: string): FileCheck => ({
    path: file.path,
    outcome: "size_differs",
    detail,
  });
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > file.size_bytes) return differs(`more than ${file.size_bytes} bytes`);
    hash.update(chunk);
    yield chunk;
  }
  if (size !== file.size_bytes) return differs(`${size} bytes, not ${file.size_bytes}`);
  const sha256 = hash.hex();
  if (sha256 === file.sha256) return { path: file.path, outcome: "ok", detail: null };
  const detail = `SHA-256 ${sha256}, not ${file.sha256}`;
  return { path: file.path, outcome: "changed", detail };
}

/** Yields the content. Rejects with IntegrityError if it does not match the manifest. */
export async function* intact(
  file: ManifestFile,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { outcome, detail } = yield* checked(file, chunks);
  if (outcome === "ok") return;
  throw new IntegrityError(`${file.path} does not match its manifest: ${detail}`);
}

/** Reads the content and compares it with the manifest. Stops when the content is too long. */
export async function checkContent(
  file: ManifestFile,
  chunks: AsyncIterable<Uint8Array>,
): Promise<FileCheck> {
  const pieces = checked(file, chunks);
  for (;;) {
    const { done, value } = await pieces.next();
    if (done) return value;
  }
}

export interface Checks {
  file(file: ManifestFile): Promise<FileCheck>;
  /** The text of manifest.json in the artifact's folder. */
  storedManifest(): Promise<string | undefined>;
  /** Paths of files that are not in the manifest. */
  extra(): Promise<string[]>;
}

/**
 * Checks the manifest's files and the stored manifest.json. Also reports extra files.
 *
 * Rejects if a method of `checks` rejects, or if `filesOf` throws.
 */
export async function verify(
  artifactId: string,
  manifest: object,
  checks: Checks,
  onCheck?: OnCheck,
): Promise<Verification> {
  const files: FileCheck[] = [];
  const take = (check: FileCheck): void => {
    files.push(check);
    onCheck?.(check);
  };
  for (const file of filesOf(manifest)) take(await checks.file(file));
  take(manifestCheck(manifest, await checks.storedManifest()));
  for (const path of await checks.extra()) take({ path, outcome: "extra", detail: null });
  // `verified` may have any value in the response. Only a literal true means verified.
  const verified = (manifest as { verified?: unknown }).verified === true;
  const ok = verified && files.every(({ outcome }) => outcome === "ok");
  return { artifact_id: artifactId, ok, verified, files };
}

function manifestCheck(manifest: object, stored: string | undefined): FileCheck {
  const path = MANIFEST_FILE;
  if (stored === undefined) return { path, outcome: "missing", detail: null };
  if (isSame(parseJson(stored), manifest)) return { path, outcome: "ok", detail: null };
  return { path, outcome: "changed", detail: "not the manifest in the registry" };
}

/** JSON equality, regardless of the order of fields. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))];
  return (
    left.length === right.size &&
    left.every(([name, value]) => right.has(name) && isSame(value, right.get(name)))
  );
}
