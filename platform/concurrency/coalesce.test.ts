import { Coalesced } from "./coalesce";

test("the first call runs at once; calls that arrive meanwhile run in one batch", async () => {
  const batches: number[][] = [];
  const double = new Coalesced<number, number>(async (items) => {
    batches.push(items);
    await new Promise((resolve) => setImmediate(resolve));
    return items.map((item) => item * 2);
  }, 3);
  const answers = await Promise.all([1, 2, 3, 4, 5].map((item) => double.add(item)));
  expect(answers).toEqual([2, 4, 6, 8, 10]);
  expect(batches).toEqual([[1], [2, 3, 4], [5]]);
});

test("a failed batch rejects all waiting calls, and a later call succeeds", async () => {
  let fails = true;
  const calls = new Coalesced<number, number>(async (items) => {
    await new Promise((resolve) => setImmediate(resolve));
    if (fails) throw new Error("unavailable");
    return items;
  }, 100);
  const first = calls.add(1).catch((error: Error) => error.message);
  const second = calls.add(2).catch((error: Error) => error.message);
  expect(await first).toBe("unavailable");
  expect(await second).toBe("unavailable");
  fails = false;
  expect(await calls.add(3)).toBe(3);
});
