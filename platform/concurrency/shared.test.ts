import { Shared } from "./shared";

test("what is asked for meanwhile is done once, by name; and again afterwards, also when it failed", async () => {
  const shared = new Shared<number>();
  let count = 0;
  const work = async (): Promise<number> => {
    await Promise.resolve();
    count += 1;
    if (count === 3) throw new Error("no");
    return count;
  };
  expect(
    await Promise.all([shared.do("a", work), shared.do("a", work), shared.do("b", work)]),
  ).toEqual([1, 1, 2]);
  const failing = [shared.do("a", work), shared.do("a", work)];
  expect(await Promise.allSettled(failing)).toMatchObject([
    { status: "rejected" },
    { status: "rejected" },
  ]);
  expect(await shared.do("a", work)).toBe(4);
});
