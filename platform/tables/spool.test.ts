import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Spool } from "./spool";

let directory: string;
let spool: Spool;
let reads: string[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "forge-spool-"));
  spool = new Spool(directory, 10);
  reads = [];
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Reads a file whose manifest describes `text`, while the store has `stored`. */
function read(text: string, stored = text): Promise<string> {
  const file = { size_bytes: text.length, sha256: sha256(text) };
  const fetch = (): Readable => {
    reads.push(text);
    return Readable.from([Buffer.from(stored)]);
  };
  return spool.use(file, fetch, async (path) => readFileSync(path, "utf8"));
}

test("concurrent and later reads fetch a file once", async () => {
  expect(await Promise.all([read("one"), read("one"), read("two")])).toEqual(["one", "one", "two"]);
  expect(await read("one")).toBe("one");
  expect(reads.sort()).toEqual(["one", "two"]);
});

test("the least recently used files are removed first", async () => {
  for (const text of ["aaaa", "bbbb"]) {
    await read(text);
    await sleep(20);
  }
  await read("aaaa");
  await read("cccc");
  expect(readdirSync(directory).sort()).toEqual([sha256("aaaa"), sha256("cccc")].sort());
});

test("a file in use is not removed", async () => {
  const file = { size_bytes: 4, sha256: sha256("aaaa") };
  await spool.use(
    file,
    () => Readable.from([Buffer.from("aaaa")]),
    async (path) => {
      await read("bbbbbbbbb");
      expect(readFileSync(path, "utf8")).toBe("aaaa");
    },
  );
});

test("the stored file must match the manifest; another file is refused and removed", async () => {
  for (const stored of ["ab", "abcd", "abx", ""]) {
    await expect(read("abc", stored)).rejects.toMatchObject({
      status: 422,
      code: "preview_failed",
    });
  }
  expect(readdirSync(directory)).toEqual([]);
  // A file that is larger than the limit is removed after its use.
  expect(await read("larger than the directory")).toBe("larger than the directory");
  expect(readdirSync(directory)).toEqual([]);
  const file = { size_bytes: 1, sha256: "../../x" };
  await expect(
    spool.use(
      file,
      () => Readable.from([]),
      async () => 1,
    ),
  ).rejects.toMatchObject({ status: 422 });
});

test("an incomplete file is fetched again", async () => {
  writeFileSync(join(directory, sha256("one")), "on");
  expect(await read("one")).toBe("one");
  expect(reads).toEqual(["one"]);
});

test("an abandoned download of another process is removed", async () => {
  const left = join(directory, `${sha256("x")}.1.part`);
  writeFileSync(left, "x");
  utimesSync(left, 0, 0);
  await read("one");
  expect(readdirSync(directory)).toEqual([sha256("one")]);
});
