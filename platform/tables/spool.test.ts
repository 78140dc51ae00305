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

/** What a file of this text is read as, when the store has that one. */
function read(text: string, stored = text): Promise<string> {
  const file = { size_bytes: text.length, sha256: sha256(text) };
  const fetch = (): Readable => {
    reads.push(text);
    return Readable.from([Buffer.from(stored)]);
  };
  return spool.use(file, fetch, async (path) => readFileSync(path, "utf8"));
}

test("a file is fetched once, also for many at once", async () => {
  expect(await Promise.all([read("one"), read("one"), read("two")])).toEqual(["one", "one", "two"]);
  expect(await read("one")).toBe("one");
  expect(reads.sort()).toEqual(["one", "two"]);
});

test("those not asked for the longest make room", async () => {
  for (const text of ["aaaa", "bbbb"]) {
    await read(text);
    await sleep(20);
  }
  await read("aaaa");
  await read("cccc");
  expect(readdirSync(directory).sort()).toEqual([sha256("aaaa"), sha256("cccc")].sort());
});

test("a file in use stays", async () => {
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

test("what the store has must be what the manifest names; nothing of another stays", async () => {
  for (const stored of ["ab", "abcd", "abx", ""]) {
    await expect(read("abc", stored)).rejects.toMatchObject({
      status: 422,
      code: "preview_failed",
    });
  }
  expect(readdirSync(directory)).toEqual([]);
  // What is larger than the directory may be goes when nobody uses it any more.
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

test("what a dead process left behind goes", async () => {
  const left = join(directory, `${sha256("x")}.1.part`);
  writeFileSync(left, "x");
  utimesSync(left, 0, 0);
  await read("one");
  expect(readdirSync(directory)).toEqual([sha256("one")]);
});
