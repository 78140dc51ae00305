import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../config/config";
import { createLogger } from "../logger";
import { LocalStore } from "../store/local-store";
import type { ObjectStore } from "../store/object-store";
import { type PreviewedTable, Tables } from "./tables";

/** Answers with what is in the file, and counts. */
const PROGRAM = `
let count = 0;
process.on("disconnect", () => process.exit());
process.on("message", ({ id, path }) => {
  const rows = [{ text: require("fs").readFileSync(path, "utf8"), count: ++count }];
  process.send({ id, rssBytes: 1, result: JSON.stringify({ num_rows: 1, columns: [], rows, truncated: false }) });
});`;

let folder: string;
let program: string;
let tables: Tables | undefined;
const logger = createLogger("silent");
const { config } = loadConfig({});

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-tables-"));
  program = join(folder, "program.js");
  writeFileSync(program, PROGRAM);
});

afterEach(async () => {
  await tables?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function tablesOf(store: ObjectStore, cacheBytes = config.tables.cacheBytes): Tables {
  const bounds = { ...config.tables, cacheBytes };
  tables = new Tables(store, { home: folder, tables: bounds }, logger, program);
  return tables;
}

/** A store that is no directory, as far as one can tell. */
function elsewhere(store: LocalStore): ObjectStore {
  return new Proxy<ObjectStore>(store, {
    get: (of, name) => (name === "localPath" ? undefined : Reflect.get(of, name).bind(of)),
  });
}

function fileOf(storageId: string, text: string): PreviewedTable {
  return {
    tenant: "t",
    storageId,
    path: "raw.csv",
    format: "csv",
    key: `${storageId}/raw.csv`,
    size_bytes: text.length,
    sha256: createHash("sha256").update(text).digest("hex"),
  };
}

test.each([
  ["a directory", (store: LocalStore) => store],
  ["elsewhere", elsewhere],
])("a file of a store that is %s is read once, also for many at once", async (_where, as) => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(as(store));
  for (const id of ["one", "two"]) await store.put(`${id}/raw.csv`, Buffer.from("text"));
  const asked = ["one", "one", "two"].map((id) => of.preview(fileOf(id, "text")));
  const counts = (await Promise.all(asked)).map(({ rows }) => rows[0]);
  expect(counts).toEqual([1, 1, 2].map((count) => ({ text: "text", count })));
  expect((await of.preview(fileOf("one", "text"))).rows).toEqual([{ text: "text", count: 1 }]);
});

test("what is not the store's is not read", async () => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(store);
  await store.put("one/x", Buffer.from(""));
  symlinkSync("/etc/hostname", join(folder, "store/one/raw.csv"));
  await expect(of.preview(fileOf("one", "text"))).rejects.toMatchObject({
    code: "preview_failed",
  });
});

test("a tenant may have so many previews waiting, and holds up no other's", async () => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(store);
  const ids = Array.from({ length: 12 }, (_, n) => `file-${n}`);
  for (const id of ids) await store.put(`${id}/raw.csv`, Buffer.from("text"));
  const asked = ids.map((id) => of.preview(fileOf(id, "text")));
  const other = of.preview({ ...fileOf("file-0", "text"), storageId: "x", tenant: "other" });
  expect((await other).rows).toEqual([{ text: "text", count: 3 }]);
  const outcomes = await Promise.allSettled(asked);
  const refused = outcomes.filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(3);
  expect(refused).toContainEqual(
    expect.objectContaining({ reason: expect.objectContaining({ status: 429 }) }),
  );
});

test("of what is elsewhere and too large to keep, rows are counted, and there is no preview", async () => {
  const store = elsewhere(new LocalStore(join(folder, "store")));
  await store.check();
  const of = tablesOf(store, 3);
  await store.put("one/raw.csv", Buffer.from("text"));
  await expect(of.preview(fileOf("one", "text"))).rejects.toMatchObject({
    code: "preview_too_large",
  });
  expect(await of.measure(fileOf("one", "text"))).toMatchObject({ num_rows: 1 });
  expect(readdirSync(join(folder, "cache/tables"))).toEqual([]);
});

test("of parquet elsewhere only the footer is fetched", async () => {
  const store = elsewhere(new LocalStore(join(folder, "store")));
  await store.check();
  const of = tablesOf(store);
  const footer = Buffer.from("a footer");
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  const file = Buffer.concat([
    Buffer.from("PAR1"),
    Buffer.alloc(1_000, "x"),
    footer,
    length,
    Buffer.from("PAR1"),
  ]);
  await store.put("one/raw.csv", file);
  const table = { ...fileOf("one", ""), format: "parquet" as const, size_bytes: file.length };
  const { rows } = (await of.measure(table)) as unknown as { rows: { text: string }[] };
  const copy = Buffer.from(file);
  copy.fill(0, 4, 1_004);
  expect(rows[0]?.text).toBe(copy.toString());
  await store.put("one/raw.csv", Buffer.from("PAR1 no footer at all PAR1"));
  await expect(of.measure({ ...table, size_bytes: 26 })).rejects.toMatchObject({
    message: expect.stringMatching(/parquet footer is longer than the file/),
  });
  await store.put("one/raw.csv", Buffer.alloc(0));
  await expect(of.measure({ ...table, size_bytes: 0 })).rejects.toMatchObject({
    message: expect.stringMatching(/too short/),
  });
  expect(readdirSync(join(folder, "cache/tables"))).toEqual([]);
});
