const MIN_MS = 1;
/** Each bucket ends 20 % above the previous one, so the error of a quantile is at most 10 %. */
const GROWTH = 1.2;
/** The last bucket counts all latencies above about 10 minutes. */
const BUCKETS = 75;

export const emptyCounts = (): number[] => Array<number>(BUCKETS).fill(0);

export function countLatency(counts: number[], ms: number): void {
  const at = Math.ceil(Math.log(Math.max(ms, MIN_MS) / MIN_MS) / Math.log(GROWTH));
  const bucket = Math.min(at, BUCKETS - 1);
  counts[bucket] = (counts[bucket] ?? 0) + 1;
}

export function addCounts(to: number[], from: readonly number[]): void {
  for (const [bucket, count] of from.entries()) to[bucket] = (to[bucket] ?? 0) + count;
}

/**
 * A quantile of the requests' latencies, in ms; null if there are no requests.
 * @param share the fraction of requests that were at most this slow, 0 to 1. 0.5: the median.
 */
export function quantile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = Math.ceil(total * share);
  for (const [bucket, count] of counts.entries()) {
    left -= count;
    // Returns the middle of the bucket on a logarithmic scale.
    if (left <= 0) return MIN_MS * GROWTH ** (bucket - (bucket === 0 ? 0 : 0.5));
  }
  return null;
}
