// Validates paths of files, because they come from a server and must not be trusted.
import { UnsafePathError } from "./errors.ts";

/**
 * Splits a path into names. Throws UnsafePathError if it could lead out of a folder.
 *
 * Also applies the rules of other operating systems, such as drive names: the folder may later be
 * copied to a machine with another operating system.
 */
export function segmentsOf(path: string): string[] {
  const segments = path.split("/");
  const reason = unsafeCharacter(path) ?? segments.map(unsafeSegment).find(Boolean);
  if (reason)
    throw new UnsafePathError(`${JSON.stringify(path)} is not a valid file path: ${reason}`);
  return segments;
}

function unsafeCharacter(path: string): string | undefined {
  if (path.includes("\\")) return "it has a backslash";
  // JSON can contain lone surrogates, which file systems can't represent.
  return /[\p{Cc}\p{Cs}]/u.test(path) ? "it has an invalid character" : undefined;
}

function unsafeSegment(segment: string): string | undefined {
  if (!segment) return "it is absolute, or has an empty name";
  if (/^[. ]+$/.test(segment)) return "it has a name of dots"; // Windows treats ".. " as ".."
  return /^[A-Za-z]:/.test(segment) ? "it has a drive name" : undefined;
}

/**
 * Throws UnsafePathError if a path is listed twice, is both a file and a folder, or equals another
 * path on a file system that ignores letter case or Unicode normalization.
 */
export function requireDistinct(paths: string[]): void {
  const files = new Set<string>();
  const folders = new Set<string>();
  const spelling = new Map<string, string>();
  for (const path of paths) {
    const segments = segmentsOf(path);
    for (const length of segments.keys()) {
      const start = segments.slice(0, length + 1).join("/");
      const key = folded(start);
      const other = spelling.get(key) ?? start;
      spelling.set(key, other);
      const names = `${JSON.stringify(start)} and ${JSON.stringify(other)}`;
      if (other !== start) throw new UnsafePathError(`${names} may be the same file`);
      const isFile = length === segments.length - 1;
      if (files.has(key) || (isFile && folders.has(key))) {
        throw new UnsafePathError(`${JSON.stringify(start)} is listed twice`);
      }
      (isFile ? files : folders).add(key);
    }
  }
}

/** Returns the same key for paths that a file system may treat as the same file. */
const folded = (path: string): string =>
  path.normalize("NFC").toUpperCase().toLowerCase().normalize("NFC");
