/** Shown in place of a missing value. */
export const ABSENT = "–";

const cached = new Map<string, Intl.NumberFormat>();

function numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = JSON.stringify(options);
  const format = cached.get(key) ?? new Intl.NumberFormat("en-US", options);
  cached.set(key, format);
  return format;
}

export function formatNumber(value: number | null | undefined, digits = 0): string {
  if (value == null || !Number.isFinite(value)) return ABSENT;
  return numberFormat({ maximumFractionDigits: digits }).format(value);
}

/**
 * A reported number, with at most six decimals. A very small number, such as a learning rate, gets
 * six significant digits instead.
 */
export function formatMeasured(value: number | null | undefined): string {
  const isSmall = value != null && value !== 0 && Math.abs(value) < 1e-4;
  return isSmall ? String(Number(value.toPrecision(6))) : formatNumber(value, 6);
}

/** USD with two or six decimals. With two, a positive amount below one cent is "< $0.01". */
export function formatUsd(value: number | null | undefined, digits: 2 | 6 = 2): string {
  if (value == null || !Number.isFinite(value)) return ABSENT;
  if (digits === 2 && value > 0 && value < 0.01) return "< $0.01";
  return numberFormat({
    style: "currency",
    currency: "USD",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(value);
}

export const formatPercent = (share: number | null | undefined): string =>
  share == null ? ABSENT : `${Math.round(share * 100)} %`;

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

export function formatBytes(bytes: number | null | undefined): string {
  if (bytes == null) return ABSENT;
  let value = bytes;
  let unit = 0;
  // From 999.5 on, the number would be rounded to 1,000.
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${formatNumber(value, unit > 0 && value < 100 ? 1 : 0)} ${BYTE_UNITS[unit]}`;
}

/**
 * A duration, rounded down. For example "840 ms", "9.9 s", "12 s", "3 min 20 s", "2 h 5 min",
 * "3 d 4 h".
 */
export function formatDuration(ms: number | null | undefined): string {
  if (ms == null || !Number.isFinite(ms)) return ABSENT;
  if (ms < 1000) return `${Math.max(0, Math.floor(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${formatNumber(Math.floor(ms / 100) / 10, 1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const steps: [number, string, number, string][] = [
    [3600, "min", 60, "s"],
    [86_400, "h", 3600, "min"],
    [Number.POSITIVE_INFINITY, "d", 86_400, "h"],
  ];
  for (const [below, large, size, small] of steps) {
    if (seconds >= below) continue;
    const whole = Math.floor(seconds / size);
    const smallSize = { s: 1, min: 60, h: 3600 }[small] ?? 1;
    const rest = Math.floor((seconds % size) / smallSize);
    return rest > 0 ? `${whole} ${large} ${rest} ${small}` : `${whole} ${large}`;
  }
  return ABSENT;
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatNumber(count)} ${count === 1 ? one : many}`;

/** The parts of a comma-separated text. */
export const commaSeparated = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

/** The text with a capital first letter and a full stop. */
export function sentence(text: string): string {
  const first = capitalised(text);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const uncapitalised = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

const DIRECTION_MARKS = /[\u202a-\u202e\u2066-\u2069]/gu;

/** Removes direction marks, so that a name can't reverse the rest of a sentence. */
export const inOneDirection = (name: string): string => name.replace(DIRECTION_MARKS, "");
