import fc from "fast-check";
import { StartPace } from "./start-pace";

function paceAt(afterS: number) {
  const clock = { ms: 1_000 };
  return { clock, pace: new StartPace(afterS, () => clock.ms) };
}

test("workflows of jobs that are submitted slowly start after the given time", () => {
  const { clock, pace } = paceAt(3);
  for (let n = 0; n < 300; n++) {
    expect(pace.nextDelayS()).toBe(3);
    clock.ms += 200;
  }
});

test("of a burst, forty start in time and the others five a second, and later ones in time again", () => {
  const { clock, pace } = paceAt(3);
  const delays = Array.from({ length: 1_000 }, () => pace.nextDelayS());
  expect(new Set(delays.slice(0, 40))).toEqual(new Set([3]));
  expect(delays.at(-1)).toBeCloseTo(959 / 5, 6);
  clock.ms += 300_000;
  expect(pace.nextDelayS()).toBe(3);
});

test("no delay is shorter than the least one or longer than ten minutes, and starts stay in order", () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(fc.constantFrom(0, 3), fc.constantFrom(0, 3_000), gaps, (afterS, before, waits) => {
      const { clock, pace } = paceAt(afterS);
      for (let n = 0; n < before; n++) pace.nextDelayS();
      let lastMs = 0;
      for (const waitMs of waits) {
        clock.ms += waitMs;
        const delayS = pace.nextDelayS();
        expect(delayS).toBeGreaterThanOrEqual(afterS);
        expect(delayS).toBeLessThanOrEqual(600);
        const startMs = clock.ms + delayS * 1000;
        expect(startMs).toBeGreaterThanOrEqual(lastMs - 1e-6);
        lastMs = startMs;
      }
    }),
  );
});
