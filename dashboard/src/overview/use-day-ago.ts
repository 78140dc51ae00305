import { useNow } from "../ui/ticker";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * 24 h before the current minute, in ISO 8601. A figure of the last 24 h uses it in its link to the
 * jobs that it counts.
 */
export const useDayAgo = (): string =>
  useNow((now) => new Date(Math.floor(now / MINUTE_MS) * MINUTE_MS - DAY_MS).toISOString());
