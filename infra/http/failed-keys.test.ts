import { FailedKeys } from "./failed-keys";

let nowMs = 0;
let keys: FailedKeys;
const digest = (n: number): Buffer => Buffer.from([n >> 8, n & 255]);

beforeEach(() => {
  nowMs = 0;
  keys = new FailedKeys(() => nowMs);
});

/** How many of so many unknown keys are looked up. */
function lookedUp(address: string, count: number, from = 0): number {
  for (let n = 0; n < count; n++) {
    try {
      keys.admit(address, digest(from + n));
    } catch (error) {
      expect(error).toMatchObject({ status: 429, code: "rate_limited" });
      return n;
    }
    keys.failed(address, digest(from + n));
  }
  return count;
}

test("an address is held off after so many, and again looked up as time goes by", () => {
  expect(lookedUp("a", 500)).toBe(50);
  expect(lookedUp("b", 20)).toBe(20);
  nowMs += 10_000;
  expect(lookedUp("a", 500, 1_000)).toBe(10);
  nowMs += 3_600_000;
  expect(lookedUp("a", 500, 2_000)).toBe(50);
});

test("a key that was good goes on from there, until it is none any more", () => {
  keys.succeeded(digest(9_999));
  lookedUp("a", 500);
  expect(() => keys.admit("a", digest(9_999))).not.toThrow();
  keys.failed("a", digest(9_999));
  expect(() => keys.admit("a", digest(9_999))).toThrow("too many keys");
});

test("it remembers an end of addresses and keys", () => {
  for (let n = 0; n < 30_000; n++) {
    keys.failed(`address-${n}`, digest(n));
    keys.succeeded(digest(n));
  }
  expect(lookedUp("address-1", 500)).toBe(50);
});
