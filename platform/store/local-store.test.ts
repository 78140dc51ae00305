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
