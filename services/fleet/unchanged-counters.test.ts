import fc from "fast-check";
import { UnchangedCounters } from "./unchanged-counters";

const TIMEOUT = 30_000;
const LATE = 3_000;
const counter = (seq: number) => [{ id: "w", seq }];

test("a counter that is unchanged for the time-out means silence", () => {
  const watch = new UnchangedCounters(TIMEOUT, LATE);
  for (let now = 0; now < TIMEOUT; now += 1_000) expect(watch.observe(counter(1), now)).toEqual([]);
  expect(watch.observe(counter(1), TIMEOUT)).toEqual([{ id: "w", seq: 1, sinceMs: 0 }]);
});

test("a heartbeat just before the time-out is in time", () => {
  const watch = new UnchangedCounters(TIMEOUT, LATE);
  for (let now = 0; now < TIMEOUT; now += 1_000) watch.observe(counter(1), now);
  expect(watch.observe(counter(2), TIMEOUT)).toEqual([]);
});

test.each([
  [
    "a late observation",
    (watch: UnchangedCounters) => watch.observe(counter(1), 29_000 + LATE + 1),
  ],
  ["a failed observation", (watch: UnchangedCounters) => watch.reset()],
])("after %s the time-out starts again", (_name, interrupt) => {
  const watch = new UnchangedCounters(TIMEOUT, LATE);
  for (let now = 0; now < TIMEOUT; now += 1_000) watch.observe(counter(1), now);
  interrupt(watch);
  const from = 33_000;
  for (let now = from; now < from + TIMEOUT - 1_000; now += 1_000) {
    expect(watch.observe(counter(1), now)).toEqual([]);
  }
  expect(watch.observe(counter(1), from + TIMEOUT)).toMatchObject(counter(1));
});

test("a worker that sends heartbeats within the time-out is never silent, however observations are spaced", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({ waitMs: fc.integer({ min: 1, max: 10_000 }), heartbeats: fc.boolean() }),
        {
          maxLength: 200,
        },
      ),
      (steps) => {
        const watch = new UnchangedCounters(TIMEOUT, LATE);
        let now = 0;
        let seq = 1;
        let lastHeartbeat = 0;
        for (const { waitMs, heartbeats } of steps) {
          now += waitMs;
          if (heartbeats || now - lastHeartbeat >= TIMEOUT) {
            seq += 1;
            lastHeartbeat = now;
          }
          expect(watch.observe(counter(seq), now)).toEqual([]);
        }
      },
    ),
  );
});
