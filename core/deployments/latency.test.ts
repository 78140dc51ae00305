import { addCounts, countLatency, emptyCounts, quantile } from "./latency";

const of = (...times: number[]): number[] => {
  const counts = emptyCounts();
  for (const ms of times) countLatency(counts, ms);
  return counts;
};

test("quantiles are off by at most 10 %", () => {
  for (const ms of [1, 3, 42, 250, 1_000, 17_000, 600_000]) {
    const found = quantile(of(ms), 0.5) ?? 0;
    expect(Math.abs(found - ms) / ms).toBeLessThanOrEqual(0.1);
  }
});

test("one slow request of a hundred shows in p99.5, but not in p50 and p99", () => {
  const counts = of(...Array<number>(99).fill(20), 5_000);
  expect(quantile(counts, 0.5)).toBeLessThan(25);
  expect(quantile(counts, 0.99)).toBeLessThan(25);
  expect(quantile(counts, 0.995)).toBeGreaterThan(4_500);
});

test("counts are added; durations of 0 ms and of hours are counted", () => {
  const counts = of(0);
  addCounts(counts, of(7_200_000));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2);
  expect(quantile(counts, 0.5)).toBe(1);
  expect(quantile(emptyCounts(), 0.5)).toBeNull();
});
