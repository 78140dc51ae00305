import { ABSENT, formatDuration } from "./format";
import type { Column } from "./table";
import { useNow } from "./ticker";

const DAY_MS = 86_400_000;

const DAY = { day: "numeric", month: "short" } as const;
const dayFormat = new Intl.DateTimeFormat("en-GB", DAY);
const yearFormat = new Intl.DateTimeFormat("en-GB", { ...DAY, year: "numeric" });
const clockFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const FULL = { dateStyle: "medium", timeStyle: "medium" } as const;
const fullFormat = new Intl.DateTimeFormat("en-GB", FULL);
const utcFormat = new Intl.DateTimeFormat("en-GB", { ...FULL, timeZone: "UTC" });

function formatAge(atMs: number, nowMs: number): string {
  const seconds = Math.round((nowMs - atMs) / 1000);
  const size = Math.abs(seconds);
  if (size < 5) return "now";
  const [count, unit] =
    size < 60
      ? [size, "s"]
      : size < 3600
        ? [Math.floor(size / 60), "min"]
        : [Math.floor(size / 3600), "h"];
  return seconds < 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
}

/** For example "4 min ago"; after a day "21 Nov 14:03"; in another year "21 Nov 2025". */
function formatMoment(atMs: number, nowMs: number): string {
  if (Math.abs(nowMs - atMs) < DAY_MS) return formatAge(atMs, nowMs);
  const date = new Date(atMs);
  const isThisYear = date.getFullYear() === new Date(nowMs).getFullYear();
  return isThisYear
    ? `${dayFormat.format(date)} ${clockFormat.format(date)}`
    : yearFormat.format(date);
}

const formatFull = (atMs: number): string =>
  `${fullFormat.format(atMs)} local · ${utcFormat.format(atMs)} UTC`;

/** A moment; its tooltip shows local time and UTC. @param at ISO 8601, or ms since the epoch. */
export function Time({ at }: { at: string | number | null | undefined }) {
  const ms = typeof at === "string" ? Date.parse(at) : (at ?? Number.NaN);
  const text = useNow((now) => (Number.isNaN(ms) ? ABSENT : formatMoment(ms, now)));
  if (Number.isNaN(ms)) return <span>{ABSENT}</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatFull(ms)}>
      {text}
    </time>
  );
}

/** A column with the time of creation. */
export const ageColumn = <Row extends { created_at: string }>(
  title: string,
  more: Partial<Column<Row>> = {},
): Column<Row> => ({
  id: "age",
  title,
  width: "104px",
  align: "right",
  cell: ({ created_at }) => <Time at={created_at} />,
  ...more,
});

/** How long something took, or has taken so far. */
export function Duration({ from, to }: { from: string | null; to?: string | null }) {
  const start = from === null ? Number.NaN : Date.parse(from);
  const end = to ? Date.parse(to) : undefined;
  const text = useNow((now) => {
    if (Number.isNaN(start)) return ABSENT;
    // Without an end, the duration so far is shown in whole seconds.
    return formatDuration(
      end === undefined ? Math.max(0, Math.floor((now - start) / 1000)) * 1000 : end - start,
    );
  });
  return <span>{text === "0 ms" ? "0 s" : text}</span>;
}
