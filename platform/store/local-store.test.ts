import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { LocalStore } from "./local-store";

let root: string;
let store: LocalStore;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "forge-store-"));
  store = new LocalStore(root);
  await store.check();
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

test("hides unfinished files, and removes them after a failure", async () => {
  await store.put("p/of-a-user.part", Buffer.from(""));
  writeFileSync(join(root, "p", ".0b6f1c1e-1111-4222-8333-abcdefabcdef.part"), "half");
  expect(await store.list("p/")).toEqual([{ path: "of-a-user.part", sizeBytes: 0 }]);
  const broken = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from("half");
    throw new Error("cut");
  };
  await expect(store.putStream("q/x", broken())).rejects.toThrow("cut");
  expect(readdirSync(join(root, "q"))).toEqual([]);
});

test("a missing directory is unavailable, not empty", async () => {
  await store.put("a/x", Buffer.from("x"));
  renameSync(root, `${root}.aside`);
  await expect(store.list("a/")).rejects.toThrow("not there");
  await expect(store.sizeOf("a/x")).rejects.toThrow("not there");
  await expect(store.put("a/x", Buffer.from("y"))).rejects.toThrow("not there");
  await expect(store.removeAll("a/")).rejects.toThrow("not there");
  expect(existsSync(root)).toBe(false);
  renameSync(`${root}.aside`, root);
  expect(await store.sizeOf("a/x")).toBe(1);
});

test("removing an object removes its empty folder, and a too long name is not found", async () => {
  await store.put("a/b/c", Buffer.from("x"));
  await store.remove("a/b/c");
  expect(readdirSync(join(root, "a"))).toEqual([]);
  expect(await store.sizeOf(`a/${"x".repeat(300)}`)).toBeUndefined();
});

/** Simulates a disk that is nearly full: a write takes only half of the bytes, without an error. */
test("a write that the disk takes in parts is whole", async () => {
  const file = await open(join(root, "any"), "w");
  const handles: FileHandle = Object.getPrototypeOf(file);
  await file.close();
  const write = handles.write as (...given: unknown[]) => Promise<unknown>;
  const half = async function (
    this: FileHandle,
    bytes: Buffer,
    from = 0,
    length = bytes.length - from,
    at: number | null = null,
  ) {
    return await write.call(this, bytes, from, Math.ceil(length / 2), at);
  };
  const chunks = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from("0123456789");
    yield Buffer.from("abcdef");
  };
  const spy = jest.spyOn(handles, "write").mockImplementation(half as typeof handles.write);
  try {
    const { sizeBytes } = await store.putStream("a/stream", chunks());
    expect(await store.sizeOf("a/stream")).toBe(sizeBytes);
    await store.append("a/appended", 0, chunks());
  } finally {
    spy.mockRestore();
  }
  for (const key of ["a/stream", "a/appended"]) {
    expect((await buffer(store.read(key))).toString()).toBe("0123456789abcdef");
  }
});
