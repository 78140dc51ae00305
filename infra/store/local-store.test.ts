import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

test("of many writers of one key, one wins whole, and nothing else stays", async () => {
  const bodies = Array.from({ length: 20 }, (_, n) => `writer ${n} `.repeat(10_000));
  await Promise.all(bodies.map((body) => store.put("a/b/c.json", Buffer.from(body))));
  expect(readdirSync(join(root, "a/b"))).toEqual(["c.json"]);
  expect(bodies).toContain(readFileSync(join(root, "a/b/c.json"), "utf8"));
});

test("lists what lies below a prefix, with sizes and checksums, but nothing half-written", async () => {
  await store.put("p/one", Buffer.from("hello"));
  await store.put("p/deep/two", Buffer.from(""));
  await store.put("other", Buffer.from("x"));
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
  await expect(store.put(key, Buffer.from(""))).rejects.toThrow("not a store key");
});
