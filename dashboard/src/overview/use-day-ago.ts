import { useNow } from "../ui/ticker";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * The time 24 h before the start of the current minute, in ISO 8601. Links on the overview page use
 * it to open the list of jobs that ended after this time.
 */
export const useDayAgo = (): string =>
  useNow((now) => new Date(Math.floor(now / MINUTE_MS) * MINUTE_MS - DAY_MS).toISOString());
