import { setTimeout as sleep } from "node:timers/promises";
import { FairShare } from "./fair-share";

let busy = 1;
let now = 0;
const share = (maxWaitMs = 10_000): FairShare =>
  new FairShare(
    { busyFrom: 0.75, maxWaitMs },
    () => now,
    () => busy,
  );

/** Whether it goes on at once. */
async function goesOn(work: Promise<void>): Promise<boolean> {
  return await Promise.race([work.then(() => true), sleep(1).then(() => false)]);
}

beforeEach(() => {
  busy = 1;
  now = 1_000;
});

test("a tenant alone has all of a busy process", async () => {
  const fair = share();
  fair.spend("a", 1_000);
  expect(await goesOn(fair.enter("a"))).toBe(true);
});

test("of two, the one that causes most of the work waits, and the other does not", async () => {
  const fair = share();
  fair.spend("big", 100);
  expect(await goesOn(fair.enter("small"))).toBe(true);
  const waits = fair.enter("big");
  expect(await goesOn(waits)).toBe(false);
  expect(await goesOn(fair.enter("small"))).toBe(true);
  busy = 0;
  now += 200;
  await waits;
});

test("nobody waits where the process has time", async () => {
  busy = 0.5;
  const fair = share();
  fair.spend("big", 100);
  fair.spend("small", 1);
  expect(await goesOn(fair.enter("big"))).toBe(true);
});

test("nothing waits longer than the longest", async () => {
  const fair = share(500);
  fair.spend("big", 1_000);
  fair.spend("small", 1);
  const waits = fair.enter("big");
  expect(await goesOn(waits)).toBe(false);
  now += 500;
  await waits;
});

test("those that wait go on in their order, and a former giant is forgotten", async () => {
  const fair = share();
  fair.spend("big", 1_000);
  fair.spend("small", 1);
  const order: number[] = [];
  const all = [1, 2, 3].map((n) => fair.enter("big").then(() => order.push(n)));
  expect(await goesOn(fair.enter("big"))).toBe(false);
  for (let n = 0; n < 10; n++) fair.spend("small", 1);
  now += 5_000;
  for (let n = 0; n < 100; n++) fair.spend("small", 1);
  await Promise.all(all);
  expect(order).toEqual([1, 2, 3]);
});
