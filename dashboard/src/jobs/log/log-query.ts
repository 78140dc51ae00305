/** The levels that a search can filter by, each with the words that loggers write for it. */
const LEVELS = {
  debug: ["DEBUG", "TRACE"],
  info: ["INFO", "NOTICE"],
  warn: ["WARN", "WARNING"],
  error: ["ERROR", "FATAL", "CRITICAL"],
} satisfies Record<string, string[]>;
export type LogLevel = keyof typeof LEVELS;

export interface LogQuery {
  /** `attempt:2`: the log of that attempt. */
  attempt?: number;
  /** `level:error`: only lines of that level. */
  level?: LogLevel;
  /** The search text without the terms above: plain text, or `/a regular expression/`. */
  text: string;
}

const TERM = /(?:^|\s)(level|attempt):(\w+)(?=\s|$)/g;

/** Parses the search text of a log. A term with an invalid value is treated as plain text. */
export function readLogQuery(typed: string): LogQuery {
  const query: LogQuery = { text: typed };
  const rest = typed.replace(TERM, (whole, name: string, value: string) => {
    const level = levelOf(value);
    if (name === "level" && level) query.level = level;
    else if (isAttempt(name, value)) query.attempt = Number(value);
    else return whole;
    return "";
  });
  // Trims only if a valid term was removed. Otherwise, outer spaces are part of the search text.
  if (rest !== typed) query.text = rest.trim();
  return query;
}

const isAttempt = (name: string, value: string): boolean =>
  name === "attempt" && /^[1-9]\d?$/.test(value);

const levelOf = (word: string): LogLevel | undefined =>
  (Object.keys(LEVELS) as LogLevel[]).find(
    (level) => level === word.toLowerCase() || LEVELS[level].includes(word.toUpperCase()),
  );

/**
 * Matches the lines of a level. They have one of the level's words in capitals, in brackets, or as
 * the value of a field such as `level`. The text "no error" does not match the level `error`.
 */
export function levelPattern(level: LogLevel): RegExp {
  const capitals = LEVELS[level].join("|");
  const anyCase = LEVELS[level].map(inAnyCase).join("|");
  return new RegExp(
    `\\b(?:${capitals})\\b|\\[(?:${anyCase})\\]|\\b(?:level|lvl|severity)"?\\s?[=:]\\s?"?(?:${anyCase})\\b`,
  );
}

/**
 * A case-insensitive pattern for the word. The `i` flag can't be used, because one part of
 * `levelPattern` must match capitals only.
 */
const inAnyCase = (word: string): string =>
  word.replace(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`);

/** Removes all valid `attempt:…` terms from the search text. */
export const withoutAttempt = (typed: string): string =>
  typed
    .replace(TERM, (whole, name: string, value: string) => (isAttempt(name, value) ? "" : whole))
    .trim();
