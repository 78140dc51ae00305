/**
 * Durations counted in buckets, each a fifth wider than the one before: counts of several minutes and processes can
 * be added up, and a quantile is at most a tenth off.
 */
const LEAST_MS = 1;
const GROWTH = 1.2;
/** The last one has all that took longer than about 12 minutes. */
const BUCKETS = 75;

export const emptyCounts = (): number[] => Array<number>(BUCKETS).fill(0);

export function countLatency(counts: number[], ms: number): void {
  const at = Math.ceil(Math.log(Math.max(ms, LEAST_MS) / LEAST_MS) / Math.log(GROWTH));
  const bucket = Math.min(at, BUCKETS - 1);
  counts[bucket] = (counts[bucket] ?? 0) + 1;
}

export function addCounts(to: number[], from: readonly number[]): void {
  for (const [bucket, count] of from.entries()) to[bucket] = (to[bucket] ?? 0) + count;
}

/** The duration that this share of all took at most, in ms; null where there are none. */
export function quantile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = Math.ceil(total * share);
  for (const [bucket, count] of counts.entries()) {
    left -= count;
    // The middle of the bucket, by the logarithm.
    if (left <= 0) return LEAST_MS * GROWTH ** (bucket - (bucket === 0 ? 0 : 0.5));
  }
  return null;
}
