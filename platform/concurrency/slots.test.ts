import { setTimeout as sleep } from "node:timers/promises";
import { Slots } from "./slots";

test("runs so many at once, the others in order, and goes on after a failure", async () => {
  const errors: unknown[] = [];
  const slots = new Slots(2, (error) => errors.push(error));
  const begun: number[] = [];
  let running = 0;
  let most = 0;
  for (let n = 0; n < 6; n++) {
    slots.run(async () => {
      begun.push(n);
      running += 1;
      most = Math.max(most, running);
      await sleep(2);
      running -= 1;
      if (n === 1) throw new Error("one of them");
    });
  }
  expect([slots.free, slots.waitingCount]).toEqual([0, 4]);
  await slots.untilIdle();
  expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
  expect(most).toBe(2);
  expect(errors).toEqual([new Error("one of them")]);
  expect([slots.free, slots.waitingCount]).toEqual([2, 0]);
});

test("waiting for one, and for those that run now", async () => {
  const slots = new Slots(2, () => undefined);
  const ended: string[] = [];
  const work = (name: string, ms: number) => async (): Promise<void> => {
    await sleep(ms);
    ended.push(name);
  };
  slots.run(work("short", 5));
  slots.run(work("long", 30));
  await slots.untilAnyEnds();
  expect(ended).toEqual(["short"]);
  const these = slots.untilRunningEnd();
  slots.run(work("later", 200));
  await these;
  expect(ended).toEqual(["short", "long"]);
  await slots.untilIdle();
  expect(ended).toEqual(["short", "long", "later"]);
});
