import { KeyedMutex } from "./keyed-mutex";

test("those of one name go in order, whether one fails or not; others do not wait", async () => {
  const mutex = new KeyedMutex();
  const said: string[] = [];
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const step = (name: string, what: string, wait?: Promise<void>) =>
    mutex.runExclusive(name, async () => {
      said.push(`${what} begins`);
      await wait;
      said.push(`${what} ends`);
      if (what === "first") throw new Error("no luck");
      return what;
    });
  const first = step("a", "first", gate);
  const second = step("a", "second");
  expect(await step("b", "other")).toBe("other");
  open();
  await expect(first).rejects.toThrow("no luck");
  expect(await second).toBe("second");
  expect(said).toEqual([
    "first begins",
    "other begins",
    "other ends",
    "first ends",
    "second begins",
    "second ends",
  ]);
});
