import fc from "fast-check";
import { Pace } from "./pace";

const RATE = { perSecond: 20, burst: 5, maxWaitMs: 1_000, maxWaiting: 3 };

test("a burst goes on at once, what comes after it at the rate", () => {
  const pace = new Pace(RATE, () => 0);
  const waits = Array.from({ length: 8 }, () => pace.next("a"));
  expect(waits).toEqual([0, 0, 0, 0, 0, 50, 100, 150]);
  expect(pace.next("b")).toBe(0);
});

test("after a pause there is a burst again", () => {
  let now = 0;
  const pace = new Pace(RATE, () => now);
  for (let n = 0; n < 10; n++) pace.next("a");
  now = 10_000;
  expect(Array.from({ length: 6 }, () => pace.next("a"))).toEqual([0, 0, 0, 0, 0, 50]);
});

test("whenever they come: none waits longer than the most, and no second lets more go than it may", () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 200 });
  fc.assert(
    fc.property(gaps, (pauses) => {
      let now = 0;
      const pace = new Pace(RATE, () => now);
      const gone: number[] = [];
      for (const pause of pauses) {
        now += pause;
        const ms = pace.next("a");
        expect(ms).toBeLessThanOrEqual(RATE.maxWaitMs);
        // Those that waited the longest go on whatever the rate is.
        if (ms < RATE.maxWaitMs) gone.push(now + ms);
      }
      for (const from of gone) {
        const within = gone.filter((at) => at >= from && at < from + 1_000);
        expect(within.length).toBeLessThanOrEqual(RATE.burst + RATE.perSecond);
      }
    }),
  );
});

test("of many at once, those beyond the most that may wait are told so", async () => {
  const pace = new Pace({ ...RATE, maxWaitMs: 20 }, () => 0);
  const came = Array.from({ length: 12 }, () => pace.wait("a"));
  expect(await Promise.all(came)).toEqual([
    ...Array(8).fill(true), // a burst, and as many as may wait
    ...Array(4).fill(false),
  ]);
  expect(await pace.wait("a")).toBe(true);
});
