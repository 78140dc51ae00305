import { MANIFEST_FILE } from "./artifacts";

const MAX_PATH_BYTES = 1024;
const MAX_SEGMENT_BYTES = 255;

/** Not a dot segment; nothing that hides a slash, ends a text, or speaks to a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const SEGMENT = /^(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]+$/;
/** The local store's name for what is not whole yet. */
const UNFINISHED = /(^|\/)\.[0-9a-f-]{36}\.part$/;

/** What a store without appends calls the folder of a file that grows: the file's name and this. */
export const PIECES_SUFFIX = ".forge-pieces";

/** Beside those, what some system takes for another name, or for none: `C:`, blanks, `...`, `x.`. */
const ODD = /^[A-Za-z]:|^[\s.]*$|[\s.]$|[\x80-\x9f]/;

const encoder = new TextEncoder();
const bytesOf = (text: string): number => encoder.encode(text).length;

/** True for a file's path that stays in its folder, on this system and on any that it is unpacked on. */
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

/** True for the name of the manifest, also on a file system that doesn't tell large letters from small. */
export const isManifestName = (path: string): boolean => path.toLowerCase() === MANIFEST_FILE;
