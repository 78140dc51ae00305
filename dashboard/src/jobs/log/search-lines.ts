import type { LineIndex } from "./line-index";
import { levelPattern, readLogQuery } from "./log-query";

/**
 * The number of lines to decode at a time. A larger number needs more memory; a smaller number
 * makes the search slower.
 */
const BLOCK_LINES = 4_096;
const MAX_FOUND = 100_000;

export interface FoundLines {
  lines: Uint32Array;
  /** There are more matching lines than `lines` contains. */
  isCut: boolean;
  error: string | null;
}

/**
 * Finds the lines that have the query's level and match the query's text. The text is
 * case-sensitive only if it is a regular expression without the `i` flag.
 */
export function searchLines(index: LineIndex, query: string): FoundLines {
  const { level, text: wanted } = readLogQuery(query);
  let pattern: RegExp | undefined;
  try {
    pattern = patternOf(wanted);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { lines: new Uint32Array(), isCut: false, error: message };
  }
  const levels = level && levelPattern(level);
  const found: number[] = [];
  const needle = wanted.toLowerCase();
  for (let from = 0; from < index.lines && found.length < MAX_FOUND; from += BLOCK_LINES) {
    const text = index.text(from, Math.min(index.lines, from + BLOCK_LINES));
    if (!pattern && !levels) {
      findPlain(text.toLowerCase(), needle, from, found);
      continue;
    }
    const lines = text.split(/\r?\n|\r$/);
    // Splitting leaves an empty text after the last newline.
    if (lines.at(-1) === "" && text !== "") lines.pop();
    for (const [at, line] of lines.entries()) {
      if (levels && !levels.test(line)) continue;
      if (pattern ? pattern.test(line) : line.toLowerCase().includes(needle)) found.push(from + at);
    }
  }
  const lines = Uint32Array.from(found.slice(0, MAX_FOUND));
  return { lines, isCut: found.length > MAX_FOUND, error: null };
}

/** `/…/` or `/…/i` is a regular expression, anything else a plain text. */
export function patternOf(query: string): RegExp | undefined {
  const match = /^\/(.+)\/(i?)$/.exec(query);
  return match ? new RegExp(match[1] ?? "", match[2]) : undefined;
}

/**
 * Finds the lines that contain a plain text. Jumps from match to match and counts the newlines in
 * between, which is faster than comparing line by line.
 */
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
