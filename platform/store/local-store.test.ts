import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

test("hides what is not whole yet, and leaves nothing of it", async () => {
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

test("a directory that is not there any more is away, not empty", async () => {
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

test("what is removed leaves no empty folder, and a name too long is nowhere", async () => {
  await store.put("a/b/c", Buffer.from("x"));
  await store.remove("a/b/c");
  expect(readdirSync(join(root, "a"))).toEqual([]);
  expect(await store.sizeOf(`a/${"x".repeat(300)}`)).toBeUndefined();
});
