import { useNow } from "../ui/ticker";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** A day before the present minute, as ISO 8601: links to what the numbers of the last 24 h count. */
export const useDayAgo = (): string =>
  useNow((now) => new Date(Math.floor(now / MINUTE_MS) * MINUTE_MS - DAY_MS).toISOString());
