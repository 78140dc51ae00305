import { PagedWork } from "./run-each";

const SIZE = 2;

/** Creates a PagedWork with the items 1 to `count`. `done` collects the items that do not fail. */
function workOn(count: number, fails: (item: number) => boolean) {
  const done: number[] = [];
  const items = Array.from({ length: count }, (_, n) => n + 1);
  const list = async (after = 0) => items.filter((item) => item > after).slice(0, SIZE);
  const work = new PagedWork<number>(SIZE, list, async (item) => {
    if (fails(item)) throw new Error(`item ${item}`);
    done.push(item);
  });
  return { work, done };
}

test("a run does all pages, and the next one begins at the first", async () => {
  const { work, done } = workOn(5, () => false);
  await work.run();
  await work.run();
  expect(done).toEqual([1, 2, 3, 4, 5, 1, 2, 3, 4, 5]);
});

test("a page with failures does not stop the others", async () => {
  const { work, done } = workOn(4, (item) => item === 1);
  await expect(work.run()).rejects.toThrow("item 1");
  expect(done).toEqual([2, 3, 4]);
});

test("a run stops after a page that failed as a whole, and the next run does the pages after it", async () => {
  const { work, done } = workOn(5, (item) => item <= 2);
  await expect(work.run()).rejects.toThrow("2 failed: Error: item 1");
  expect(done).toEqual([]);
  await work.run();
  expect(done).toEqual([3, 4, 5]);
  await expect(work.run()).rejects.toThrow("item 1");
});
