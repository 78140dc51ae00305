import { ReadingLimit, TICK_MS } from "./reading-limit";

/** Advances the clock by `stepMs` per call until the limit is reached; returns when, in ms. */
function reachedAfter(
  timeoutMs: number,
  stepMs: (call: number) => number,
  cpuShare: number,
): number {
  let now = 0;
  const limit = new ReadingLimit(
    1,
    timeoutMs,
    () => now,
    () => now * cpuShare,
  );
  for (let call = 0; ; call++) {
    now += stepMs(call);
    if (limit.isReached()) return now;
  }
}

const steadily = (): number => TICK_MS;

test("a reader that uses its time is limited to it", () => {
  expect(reachedAfter(2_000, steadily, 1)).toBe(2_000);
});

test("a reader that gets little CPU time gets more time, but not without end", () => {
  expect(reachedAfter(2_000, steadily, 0.25)).toBe(4_000);
  expect(reachedAfter(2_000, steadily, 0)).toBe(8_000);
});

test("a standstill of this process does not count", () => {
  const stopped = (call: number): number => (call === 5 ? 3_600_000 : TICK_MS);
  expect(reachedAfter(2_000, stopped, 1)).toBeGreaterThan(3_600_000 + 1_000);
});

test("without CPU times, elapsed time counts", () => {
  expect(reachedAfter(2_000, steadily, Number.NaN)).toBe(2_000);
});
