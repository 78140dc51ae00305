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
  await store.put("p/of-a-user.part", Buffer.from(""));
  writeFileSync(join(root, "p", ".0b6f1c1e-1111-4222-8333-abcdefabcdef.part"), "half");
  expect(await store.list("p/")).toEqual([
    {
      path: "deep/two",
      sizeBytes: 0,
      sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    },
    {
      path: "of-a-user.part",
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

test("gathers a file by parts, also sent twice or broken off, and gives it its name when it is whole", async () => {
  const text = async function* (...parts: string[]): AsyncGenerator<Buffer> {
    for (const part of parts) yield Buffer.from(part);
  };
  await store.append("up/x", 0, text("hel", "lo"));
  const broken = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from(" wo");
    throw new Error("cut");
  };
  await expect(store.append("up/x", 5, broken())).rejects.toThrow("cut");
  expect(await store.sizeOf("up/x")).toBe(8);
  await store.append("up/x", 5, text(" world"));
  await store.append("up/x", 5, text(" world"));
  expect(await store.measure("up/x")).toEqual({
    sizeBytes: 11,
    sha256: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
  });
  await store.put("done/x", Buffer.from("older, and longer than the new one"));
  expect(await store.move("up/x", "done/x")).toBe(true);
  expect(await store.move("up/x", "done/x")).toBe(false);
  await store.append("up/y", 0, text("y"));
  expect(await store.move("up/y", "done/x/y")).toBe(false);
  expect(readFileSync(join(root, "done/x"), "utf8")).toBe("hello world");
  expect(await store.measure("up/x")).toBeUndefined();
  await store.removeAll("up/");
  await store.removeAll("never/");
  expect(readdirSync(root)).toEqual(["done"]);
});

test.each(["../x", "a/../../x", "/etc/passwd", "a\0b"])("%j is not a key", async (key) => {
  await expect(store.put(key, Buffer.from(""))).rejects.toThrow("not a store key");
});
