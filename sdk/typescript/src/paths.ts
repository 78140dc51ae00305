// Paths of files come from outside, and are hostile until they have been through here.
import { UnsafePathError } from "./errors.ts";

/**
 * The names on the way to a file. Throws UnsafePathError for what may lead out of a folder, here or
 * on another system: a later reader of the folder may use one that knows drives.
 */
export function segmentsOf(path: string): string[] {
  const segments = path.split("/");
  const reason = unsafeCharacter(path) ?? segments.map(unsafeSegment).find(Boolean);
  if (reason)
    throw new UnsafePathError(`${JSON.stringify(path)} is not the path of a file: ${reason}`);
  return segments;
}

function unsafeCharacter(path: string): string | undefined {
  if (path.includes("\\")) return "it has a backslash";
  // Lone surrogates, which JSON can carry, have no form on a disk.
  return /[\p{Cc}\p{Cs}]/u.test(path) ? "it has a character that is none of a name" : undefined;
}

function unsafeSegment(segment: string): string | undefined {
  if (!segment) return "it is absolute, or a name in it is empty";
  if (/^[. ]+$/.test(segment)) return "it has a name of dots"; // Windows takes ".. " for ".."
  return /^[A-Za-z]:/.test(segment) ? "it names a drive" : undefined;
}

/** Throws UnsafePathError where not every disk could hold all of these files together. */
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
        throw new UnsafePathError(`${JSON.stringify(start)} is there twice`);
      }
      (isFile ? files : folders).add(key);
    }
  }
}

/** The same for all names that some file system takes for one. */
const folded = (path: string): string =>
  path.normalize("NFC").toUpperCase().toLowerCase().normalize("NFC");
