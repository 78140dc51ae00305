import timers from "node:timers/promises";
import fc from "fast-check";
import { Throttle } from "./throttle";

afterEach(() => jest.restoreAllMocks());

const RATE = { perSecond: 20, burst: 5, maxWaitMs: 1_000, maxWaiting: 3 };

test("a burst passes at once, later calls pass at the rate", () => {
  const throttle = new Throttle(RATE, () => 0);
  const waits = Array.from({ length: 8 }, () => throttle.next("a"));
  expect(waits).toEqual([0, 0, 0, 0, 0, 50, 100, 150]);
  expect(throttle.next("b")).toBe(0);
});

test("a burst is allowed again after a pause", () => {
  let now = 0;
  const throttle = new Throttle(RATE, () => now);
  for (let n = 0; n < 10; n++) throttle.next("a");
  now = 10_000;
  expect(Array.from({ length: 6 }, () => throttle.next("a"))).toEqual([0, 0, 0, 0, 0, 50]);
});

test("at any arrival pattern, no call waits longer than the maximum, and no second exceeds the rate", () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 200 });
  fc.assert(
    fc.property(gaps, (pauses) => {
      let now = 0;
      const throttle = new Throttle(RATE, () => now);
      const passed: number[] = [];
      for (const pause of pauses) {
        now += pause;
        const ms = throttle.next("a");
        expect(ms).toBeLessThanOrEqual(RATE.maxWaitMs);
        // Leave out calls with the maximum wait, because these may exceed the rate.
        if (ms < RATE.maxWaitMs) passed.push(now + ms);
      }
      for (const from of passed) {
        const within = passed.filter((at) => at >= from && at < from + 1_000);
        expect(within.length).toBeLessThanOrEqual(RATE.burst + RATE.perSecond);
      }
    }),
  );
});

test("calls beyond the maximum number of waiting calls are refused", async () => {
  const throttle = new Throttle({ ...RATE, maxWaitMs: 20 }, () => 0);
  const calls = Array.from({ length: 12 }, () => throttle.wait("a"));
  expect(await Promise.all(calls)).toEqual([
    ...Array(8).fill(true), // a burst, and the calls that may wait
    ...Array(4).fill(false),
  ]);
  expect(await throttle.wait("a")).toBe(true);
});

test("calls above the rate that arrive together pass at different times", async () => {
  const sleep = jest.spyOn(timers, "setTimeout").mockResolvedValue(undefined);
  const throttle = new Throttle({ ...RATE, maxWaitMs: 1_000, maxWaiting: 100 }, () => 0);
  await Promise.all(Array.from({ length: 60 }, () => throttle.wait("a")));
  const waits = sleep.mock.calls.map(([ms]) => ms ?? 0);
  const longest = waits.slice(-36);
  expect(Math.min(...longest)).toBeGreaterThanOrEqual(500);
  expect(Math.max(...longest)).toBeLessThanOrEqual(1_000);
  expect(Math.max(...longest) - Math.min(...longest)).toBeGreaterThan(100);
});
