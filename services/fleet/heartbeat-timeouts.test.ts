import fc from "fast-check";
import { HeartbeatTimeouts } from "./heartbeat-timeouts";

const TIMEOUT = 30_000;
const LATE = 3_000;
const heard = (seq: number) => [{ id: "w", seq }];

test("a number that stands still for the time-out is silence", () => {
  const watch = new HeartbeatTimeouts(TIMEOUT, LATE);
  for (let now = 0; now < TIMEOUT; now += 1_000) expect(watch.observe(heard(1), now)).toEqual([]);
  expect(watch.observe(heard(1), TIMEOUT)).toEqual([{ id: "w", seq: 1, sinceMs: 0 }]);
});

test("a heartbeat just before the time-out costs nothing", () => {
  const watch = new HeartbeatTimeouts(TIMEOUT, LATE);
  for (let now = 0; now < TIMEOUT; now += 1_000) watch.observe(heard(1), now);
  expect(watch.observe(heard(2), TIMEOUT)).toEqual([]);
});

test.each([
  ["a late look", (watch: HeartbeatTimeouts) => watch.observe(heard(1), 29_000 + LATE + 1)],
  ["a failed look", (watch: HeartbeatTimeouts) => watch.startOver()],
])("%s proves nothing: the time-out begins anew", (_name, interrupt) => {
  const watch = new HeartbeatTimeouts(TIMEOUT, LATE);
  for (let now = 0; now < TIMEOUT; now += 1_000) watch.observe(heard(1), now);
  interrupt(watch);
  const from = 33_000;
  for (let now = from; now < from + TIMEOUT - 1_000; now += 1_000) {
    expect(watch.observe(heard(1), now)).toEqual([]);
  }
  expect(watch.observe(heard(1), from + TIMEOUT)).toMatchObject(heard(1));
});

test("whoever beats more often than the time-out is never silent, however looks are spaced", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({ waitMs: fc.integer({ min: 1, max: 10_000 }), heartbeats: fc.boolean() }),
        {
          maxLength: 200,
        },
      ),
      (steps) => {
        const watch = new HeartbeatTimeouts(TIMEOUT, LATE);
        let now = 0;
        let seq = 1;
        let lastBeat = 0;
        for (const { waitMs, heartbeats } of steps) {
          now += waitMs;
          if (heartbeats || now - lastBeat >= TIMEOUT) {
            seq += 1;
            lastBeat = now;
          }
          expect(watch.observe(heard(seq), now)).toEqual([]);
        }
      },
    ),
  );
});
