import type { LineIndex } from "./line-index";

/** Decoded at once: few enough to keep memory small, enough for searching to be fast. */
const BLOCK_LINES = 4_096;
const MAX_FOUND = 100_000;

export interface FoundLines {
  lines: Uint32Array;
  /** There are more than can be listed. */
  isCut: boolean;
  error: string | null;
}

/** The lines that contain a text, whatever its case, or that match `/an expression/`. */
export function searchLines(index: LineIndex, query: string): FoundLines {
  const nothing = { lines: new Uint32Array(), isCut: false };
  let pattern: RegExp | undefined;
  try {
    pattern = patternOf(query);
  } catch (error) {
    return { ...nothing, error: error instanceof Error ? error.message : String(error) };
  }
  const found: number[] = [];
  const needle = query.toLowerCase();
  for (let from = 0; from < index.lines && found.length < MAX_FOUND; from += BLOCK_LINES) {
    const text = index.text(from, Math.min(index.lines, from + BLOCK_LINES));
    if (pattern) {
      const { length } = found;
      const lines = text.split("\n");
      for (let at = 0; at < lines.length; at++) {
        if (pattern.test(lines[at] ?? "")) found.push(from + at);
      }
      // The last line's end is followed by an empty text.
      if (
        text.endsWith("\n") &&
        found.at(-1) === from + lines.length - 1 &&
        found.length > length
      ) {
        found.pop();
      }
    } else findPlain(text.toLowerCase(), needle, from, found);
  }
  const lines = Uint32Array.from(found.slice(0, MAX_FOUND));
  return { lines, isCut: found.length > MAX_FOUND, error: null };
}

/** `/…/` or `/…/i` is an expression, anything else a plain text. */
export function patternOf(query: string): RegExp | undefined {
  const match = /^\/(.+)\/(i?)$/.exec(query);
  return match ? new RegExp(match[1] ?? "", match[2]) : undefined;
}

/** Goes from match to match and counts the line ends between them: most lines are never looked at alone. */
function findPlain(text: string, needle: string, firstLine: number, found: number[]): void {
  let line = firstLine;
  let lineEnd = text.indexOf("\n");
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, lineEnd + 1)) {
    while (lineEnd !== -1 && lineEnd < at) {
      line += 1;
      lineEnd = text.indexOf("\n", lineEnd + 1);
    }
    found.push(line);
    if (lineEnd === -1) return;
  }
}
