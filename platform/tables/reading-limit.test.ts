import { ReadingLimit, TICK_MS } from "./reading-limit";

/**
 * Advances the clock by `stepMs` per call until there is a verdict. Returns the verdict and the
 * time in ms.
 */
function verdictOn(
  timeoutMs: number,
  stepMs: (call: number) => number,
  cpuShare: number,
): [verdict: string, ms: number] {
  let now = 0;
  const limit = new ReadingLimit(
    1,
    timeoutMs,
    () => now,
    () => now * cpuShare,
  );
  for (let call = 0; ; call++) {
    now += stepMs(call);
    const verdict = limit.verdict();
    if (verdict) return [verdict, now];
  }
}

const steadily = (): number => TICK_MS;

test("a reader that uses its time is limited to it", () => {
  expect(verdictOn(2_000, steadily, 1)).toEqual(["reached", 2_000]);
});

test("a reader that gets little CPU time gets more time", () => {
  expect(verdictOn(2_000, steadily, 0.5)).toEqual(["reached", 4_000]);
});

test("a reader that hardly runs has not used its time when it is given up", () => {
  expect(verdictOn(2_000, steadily, 0.2)).toEqual(["starved", 8_000]);
  expect(verdictOn(2_000, steadily, 0)).toEqual(["starved", 8_000]);
});

test("a standstill of this process does not count", () => {
  const stopped = (call: number): number => (call === 5 ? 3_600_000 : TICK_MS);
  const [verdict, ms] = verdictOn(2_000, stopped, 1);
  expect(verdict).toBe("reached");
  expect(ms).toBeGreaterThan(3_600_000 + 1_000);
});

test("without CPU times, elapsed time counts", () => {
  expect(verdictOn(2_000, steadily, Number.NaN)).toEqual(["reached", 2_000]);
});
