import { KeyedMutex } from "./keyed-mutex";

test("calls with one key run in order, even after a failure; other keys do not wait", async () => {
  const mutex = new KeyedMutex();
  const log: string[] = [];
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const step = (name: string, what: string, wait?: Promise<void>) =>
    mutex.runExclusive(name, async () => {
      log.push(`${what} begins`);
      await wait;
      log.push(`${what} ends`);
      if (what === "first") throw new Error("it failed");
      return what;
    });
  const first = step("a", "first", gate);
  const second = step("a", "second");
  expect(await step("b", "other")).toBe("other");
  open();
  await expect(first).rejects.toThrow("it failed");
  expect(await second).toBe("second");
  expect(log).toEqual([
    "first begins",
    "other begins",
    "other ends",
    "first ends",
    "second begins",
    "second ends",
  ]);
});
