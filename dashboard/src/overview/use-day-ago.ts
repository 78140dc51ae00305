import { useNow } from "../ui/ticker";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * 24 h before the current minute, as ISO 8601. Links use it to list what the 24 h figures count.
 */
export const useDayAgo = (): string =>
  useNow((now) => new Date(Math.floor(now / MINUTE_MS) * MINUTE_MS - DAY_MS).toISOString());
