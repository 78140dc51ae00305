import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalStore } from "./local-store";

let root: string;
let store: LocalStore;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "forge-store-"));
  store = new LocalStore(root);
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

test("of many writers of one key, the first stays and all are told its bytes", async () => {
  const bodies = Array.from({ length: 20 }, (_, n) => Buffer.from(`writer ${n}`));
  const seen = await Promise.all(bodies.map((body) => store.putIfAbsent("a/b/c.json", body)));
  expect(new Set(seen.map(String)).size).toBe(1);
  expect(readdirSync(join(root, "a/b"))).toEqual(["c.json"]);
});

test("lists what lies below a prefix, with sizes and checksums, but nothing half-written", async () => {
  await store.putIfAbsent("p/one", Buffer.from("hello"));
  await store.putIfAbsent("p/deep/two", Buffer.from(""));
  await store.putIfAbsent("other", Buffer.from("x"));
  writeFileSync(join(root, "p", ".x.part"), "half");
  expect(await store.list("p/")).toEqual([
    {
      path: "deep/two",
      sizeBytes: 0,
      sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    },
    {
      path: "one",
      sizeBytes: 5,
      sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    },
  ]);
  expect(await store.list("nothing/")).toEqual([]);
});

test.each(["../x", "a/../../x", "/etc/passwd", "a\0b"])("%j is not a key", async (key) => {
  await expect(store.putIfAbsent(key, Buffer.from(""))).rejects.toThrow("not a store key");
});
