import { Presence } from "./presence";

const at = (seconds: number, databaseSeconds = seconds) => ({
  runningMs: seconds * 1000,
  databaseMs: databaseSeconds * 1000,
});

test("it grows with looks that come in time", () => {
  const presence = new Presence(6_000);
  expect(presence.forMs).toBe(0);
  for (const second of [100, 102, 104]) presence.look(at(second));
  expect(presence.forMs).toBe(4_000);
});

test("a look that comes late begins it anew", () => {
  const presence = new Presence(6_000);
  for (const second of [100, 102, 109]) presence.look(at(second));
  expect(presence.forMs).toBe(0);
  presence.look(at(111));
  expect(presence.forMs).toBe(2_000);
});

test("so does a look that failed", () => {
  const presence = new Presence(6_000);
  presence.look(at(100));
  presence.interrupt();
  expect(presence.forMs).toBe(0);
  presence.look(at(102));
  expect(presence.forMs).toBe(0);
  presence.look(at(103));
  expect(presence.forMs).toBe(1_000);
});

test("a clock set forward shows, one set back or slewed does not", () => {
  const presence = new Presence(6_000);
  expect(presence.look(at(100, 5_000))).toBe(0);
  expect(presence.look(at(102, 5_002.3))).toBe(0);
  expect(presence.look(at(104, 91_004.3))).toBe(86_000_000);
  expect(presence.look(at(106, 91_006.3))).toBe(0);
  expect(presence.look(at(108, 5_000))).toBe(0);
});

test("a process that stood still sees no step", () => {
  const presence = new Presence(6_000);
  presence.look(at(100, 5_000));
  expect(presence.look(at(4_000, 8_900))).toBe(0);
});
