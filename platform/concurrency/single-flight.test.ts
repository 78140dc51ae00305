import { SingleFlight } from "./single-flight";

test("concurrent calls with one key run once; later calls run again, also after a failure", async () => {
  const flights = new SingleFlight<number>();
  let count = 0;
  const work = async (): Promise<number> => {
    await Promise.resolve();
    count += 1;
    if (count === 3) throw new Error("no");
    return count;
  };
  expect(
    await Promise.all([flights.do("a", work), flights.do("a", work), flights.do("b", work)]),
  ).toEqual([1, 1, 2]);
  const failing = [flights.do("a", work), flights.do("a", work)];
  expect(await Promise.allSettled(failing)).toMatchObject([
    { status: "rejected" },
    { status: "rejected" },
  ]);
  expect(await flights.do("a", work)).toBe(4);
});
