import { SharedReads } from "./shared-reads";

/** Reads that end when the test says so. */
class Reads {
  readonly begun: { end(result: string): void; fail(error: Error): void }[] = [];

  readonly read = (): Promise<string> =>
    new Promise((resolve, reject) => {
      this.begun.push({ end: resolve, fail: reject });
    });
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("calls that arrive while a read of their key runs share the next one", async () => {
  const shared = new SharedReads<string>(() => true);
  const { begun, read } = new Reads();
  const first = shared.get("a", read);
  const others = [shared.get("a", read), shared.get("a", read)];
  const ofOtherKey = shared.get("b", read);
  expect(begun).toHaveLength(2);
  begun[1]?.end("b");
  expect(await ofOtherKey).toBe("b");
  begun[0]?.end("old");
  expect(await first).toBe("old");
  await settled();
  expect(begun).toHaveLength(3);
  const late = shared.get("a", read);
  begun[2]?.end("new");
  expect(await Promise.all(others)).toEqual(["new", "new"]);
  await settled();
  expect(begun).toHaveLength(4);
  begun[3]?.end("newest");
  expect(await late).toBe("newest");
});

test("a call after the last read begins at once, and no key is kept", async () => {
  const shared = new SharedReads<string>(() => true);
  const { begun, read } = new Reads();
  for (const n of [0, 1, 2]) {
    const result = shared.get("a", read);
    expect(begun).toHaveLength(n + 1);
    begun[n]?.end("done");
    expect(await result).toBe("done");
    await settled();
    expect(shared).toMatchObject({ reads: { groups: new Map() } });
  }
});

test.each([
  [true, ["gone", "gone"]],
  [false, ["gone", "back"]],
])("if waiting calls fail with a failed read: %s", async (fails, expected) => {
  const shared = new SharedReads<string>(() => fails);
  const { begun, read } = new Reads();
  const textOf = (error: Error): string => error.message;
  const first = shared.get("a", read).catch(textOf);
  const second = shared.get("a", read).catch(textOf);
  begun[0]?.fail(new Error("gone"));
  await settled();
  begun[1]?.end("back");
  expect(await Promise.all([first, second])).toEqual(expected);
  await settled();
  const later = shared.get("a", read);
  begun.at(-1)?.end("later");
  expect(await later).toBe("later");
  await settled();
  expect(shared).toMatchObject({ reads: { groups: new Map() } });
});
