export interface Span {
  text: string;
  /** CSS class names, e.g. "red bold". */
  style: string;
}

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
/**
 * Matches an ANSI escape sequence. `ansiSpans` applies text colours and bold, and removes all
 * sequences.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches the escape character
const SEQUENCE = /\u001b\[([0-9;]*)([A-Za-z])/g;

/** Splits a line at its ANSI sequences into spans of one style each. */
export function ansiSpans(line: string): Span[] {
  if (!line.includes("\u001b")) return [{ text: line, style: "" }];
  const spans: Span[] = [];
  let color = "";
  let isBold = false;
  let at = 0;
  const push = (text: string): void => {
    if (text) spans.push({ text, style: [color, isBold && "bold"].filter(Boolean).join(" ") });
  };
  for (const match of line.matchAll(SEQUENCE)) {
    push(line.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] !== "m") continue;
    for (const code of (match[1] || "0").split(";").map(Number)) {
      if (code === 0) {
        color = "";
        isBold = false;
      } else if (code === 1) isBold = true;
      else if (code === 22) isBold = false;
      else if (code === 39) color = "";
      else if (code >= 30 && code <= 37) color = COLORS[code - 30] ?? "";
      else if (code >= 90 && code <= 97) color = COLORS[code - 90] ?? "";
    }
  }
  push(line.slice(at));
  return spans;
}
