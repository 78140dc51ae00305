import { MANIFEST_FILE } from "./artifacts";

const MAX_PATH_BYTES = 1024;
const MAX_SEGMENT_BYTES = 255;

/** A path segment other than `.` and `..`, without backslashes and control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern rejects them
const SEGMENT = /^(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]+$/;
/** Names that the local store itself gives to unfinished files. */
const UNFINISHED = /(^|\/)\.[0-9a-f-]{36}\.part$/;

/** Suffix of the folder that holds a growing file's pieces, in stores that can't append. */
export const PIECES_SUFFIX = ".forge-pieces";

/** Names that some operating systems reject or treat as another name: `C:`, blanks, `...`, `x.`. */
const ODD = /^[A-Za-z]:|^[\s.]*$|[\s.]$|[\x80-\x9f]/;

const encoder = new TextEncoder();
const bytesOf = (text: string): number => encoder.encode(text).length;

/**
 * True if a relative path stays in its folder on every operating system, and contains no name that
 * the stores use for their own files.
 */
export function isPlainPath(path: string): boolean {
  const segments = path.split("/");
  return (
    bytesOf(path) <= MAX_PATH_BYTES &&
    !UNFINISHED.test(path) &&
    segments.every(
      (segment) =>
        SEGMENT.test(segment) &&
        !ODD.test(segment) &&
        !segment.endsWith(PIECES_SUFFIX) &&
        bytesOf(segment) <= MAX_SEGMENT_BYTES,
    )
  );
}

/** True for the manifest's name in any letter case, because some file systems ignore case. */
export const isManifestName = (path: string): boolean => path.toLowerCase() === MANIFEST_FILE;
