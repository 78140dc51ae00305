import { Coalesced, CoalescedByGroup } from "./coalesce";

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("the first call runs at once; calls that arrive meanwhile run in one batch", async () => {
  const batches: number[][] = [];
  const double = new Coalesced<number, number>(
    async (items) => {
      batches.push(items);
      await nextTurn();
      return items.map((item) => item * 2);
    },
    { maxSize: 3 },
  );
  const answers = await Promise.all([1, 2, 3, 4, 5].map((item) => double.add(item)));
  expect(answers).toEqual([2, 4, 6, 8, 10]);
  expect(batches).toEqual([[1], [2, 3, 4], [5]]);
});

test("a failed batch rejects all waiting calls, and a later call succeeds", async () => {
  let fails = true;
  const calls = new Coalesced<number, number>(
    async (items) => {
      await nextTurn();
      if (fails) throw new Error("unavailable");
      return items;
    },
    { maxSize: 100 },
  );
  const first = calls.add(1).catch((error: Error) => error.message);
  const second = calls.add(2).catch((error: Error) => error.message);
  expect(await first).toBe("unavailable");
  expect(await second).toBe("unavailable");
  fails = false;
  expect(await calls.add(3)).toBe(3);
});

test("if waiting calls don't fail with a failed batch, they run in the next one", async () => {
  const calls = new Coalesced<number, number>(
    async (items) => {
      await nextTurn();
      if (items.includes(1)) throw new Error("refused");
      return items;
    },
    { maxSize: 2, failsWaiting: () => false },
  );
  const results = await Promise.allSettled([0, 1, 2, 3, 4].map((item) => calls.add(item)));
  expect(results.map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "rejected",
    "fulfilled",
    "fulfilled",
  ]);
});

test("a result that is a promise settles its call alone", async () => {
  const calls = new Coalesced<number, number>(
    async (items) => {
      await nextTurn();
      return items.map(async (item) => {
        if (item === 2) throw new Error("refused");
        return item;
      });
    },
    { maxSize: 10 },
  );
  const results = await Promise.allSettled([0, 1, 2, 3].map((item) => calls.add(item)));
  expect(results.map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "rejected",
    "fulfilled",
  ]);
});

test("a batch has at most so many bytes, and a larger item runs alone", async () => {
  const batches: number[][] = [];
  const calls = new Coalesced<number, number>(
    async (items) => {
      batches.push(items);
      await nextTurn();
      return items;
    },
    { maxSize: 3, maxBytes: 10, bytesOf: (item) => item },
  );
  await Promise.all([1, 6, 4, 1, 30, 2, 2, 2, 2].map((item) => calls.add(item)));
  expect(batches).toEqual([[1], [6, 4], [1], [30], [2, 2, 2], [2]]);
});

test("no group waits for the batch of another", async () => {
  let endSlow = (): void => undefined;
  const calls = new CoalescedByGroup<number, string>(
    async (group, items) => {
      if (group === "slow") await new Promise<void>((resolve) => (endSlow = resolve));
      return items.map((item) => `${group} ${item}`);
    },
    { maxSize: 2 },
  );
  const slow = calls.add("slow", 1);
  const fast = [1, 2, 3].map((item) => calls.add("fast", item));
  expect(await Promise.all(fast)).toEqual(["fast 1", "fast 2", "fast 3"]);
  endSlow();
  expect(await slow).toBe("slow 1");
});
