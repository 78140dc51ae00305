import { Batcher } from "./batcher";

test("calls within the window are one batch, answered in order", async () => {
  const batches: number[][] = [];
  const batcher = new Batcher<number, number>(
    async (items) => {
      batches.push(items);
      return items.map((item) => item * 2);
    },
    5,
    100,
  );
  expect(await Promise.all([1, 2, 3].map((item) => batcher.add(item)))).toEqual([2, 4, 6]);
  expect(await batcher.add(4)).toBe(8);
  expect(batches).toEqual([[1, 2, 3], [4]]);
});

test("a full batch does not wait", async () => {
  const batcher = new Batcher<number, number>(async (items) => items, 60_000, 2);
  expect(await Promise.all([batcher.add(1), batcher.add(2)])).toEqual([1, 2]);
});

test("a failed batch rejects each of its calls, and the next batch succeeds", async () => {
  let fail = true;
  const batcher = new Batcher<number, number>(
    async (items) => {
      if (fail) throw new Error("unavailable");
      return items;
    },
    1,
    100,
  );
  const both = await Promise.allSettled([batcher.add(1), batcher.add(2)]);
  expect(both.map((each) => each.status)).toEqual(["rejected", "rejected"]);
  fail = false;
  expect(await batcher.add(3)).toBe(3);
});
