import { useNow } from "../ui/ticker";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * 24 h before the current minute, in ISO 8601. A figure that counts jobs of the last 24 h links to
 * the list of the jobs that ended after this time.
 */
export const useDayAgo = (): string =>
  useNow((now) => new Date(Math.floor(now / MINUTE_MS) * MINUTE_MS - DAY_MS).toISOString());
