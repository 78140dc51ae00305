import { Presence } from "./presence";

const look = (presence: Presence, ...seconds: number[]): void => {
  for (const second of seconds) presence.look(second * 1000);
};

test("it grows with looks that come in time", () => {
  const presence = new Presence(6_000);
  expect(presence.forMs).toBe(0);
  look(presence, 100, 102, 104);
  expect(presence.forMs).toBe(4_000);
});

test("a look that comes late begins it anew", () => {
  const presence = new Presence(6_000);
  look(presence, 100, 102, 109);
  expect(presence.forMs).toBe(0);
  look(presence, 111);
  expect(presence.forMs).toBe(2_000);
});

test("so does a look that failed", () => {
  const presence = new Presence(6_000);
  look(presence, 100);
  presence.interrupt();
  expect(presence.forMs).toBe(0);
  look(presence, 102);
  expect(presence.forMs).toBe(0);
  look(presence, 103);
  expect(presence.forMs).toBe(1_000);
});
