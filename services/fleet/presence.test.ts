import { Presence } from "./presence";

const recordAt = (presence: Presence, ...seconds: number[]): void => {
  for (const second of seconds) presence.record(second * 1000);
};

test("presence grows with each check that is in time", () => {
  const presence = new Presence(6_000);
  expect(presence.forMs).toBe(0);
  recordAt(presence, 100, 102, 104);
  expect(presence.forMs).toBe(4_000);
});

test("a late check starts it again", () => {
  const presence = new Presence(6_000);
  recordAt(presence, 100, 102, 109);
  expect(presence.forMs).toBe(0);
  recordAt(presence, 111);
  expect(presence.forMs).toBe(2_000);
});

test("a failed check starts it again", () => {
  const presence = new Presence(6_000);
  recordAt(presence, 100);
  presence.interrupt();
  expect(presence.forMs).toBe(0);
  recordAt(presence, 102);
  expect(presence.forMs).toBe(0);
  recordAt(presence, 103);
  expect(presence.forMs).toBe(1_000);
});
