import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../config/config";
import { createLogger } from "../logger";
import { LocalStore } from "../store/local-store";
import { type ObjectStore, StoreUnavailable } from "../store/object-store";
import { type PreviewedTable, Tables } from "./tables";

/** A reader program. It returns the file's content and the number of requests so far. */
const PROGRAM = `
let count = 0;
process.on("disconnect", () => process.exit());
process.send("started");
process.on("message", ({ id, path }) => {
  if (path.includes("killing")) process.kill(process.pid, "SIGKILL");
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
  const forTests = { program, maxInterruptions: 3 };
  tables = new Tables(store, { home: folder, tables: bounds }, logger, forTests);
  return tables;
}

/** Hides a local store's file paths, so that it looks like a remote store. */
function remote(store: LocalStore): ObjectStore {
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
  ["remote", remote],
])("a file of a store that is %s is read once for concurrent requests", async (_where, as) => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(as(store));
  for (const id of ["one", "two"]) await store.put(`${id}/raw.csv`, Buffer.from("text"));
  const previews = ["one", "one", "two"].map((id) => of.preview(fileOf(id, "text")));
  const counts = (await Promise.all(previews)).map(({ rows }) => rows[0]);
  expect(counts).toEqual([1, 1, 2].map((count) => ({ text: "text", count })));
  expect((await of.preview(fileOf("one", "text"))).rows).toEqual([{ text: "text", count: 1 }]);
});

test("a link to a file outside of the store is not read", async () => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(store);
  await store.put("one/x", Buffer.from(""));
  symlinkSync("/etc/hostname", join(folder, "store/one/raw.csv"));
  await expect(of.preview(fileOf("one", "text"))).rejects.toMatchObject({
    code: "preview_failed",
  });
});

test("while the store is away, reading fails for now", async () => {
  const directory = join(folder, "store");
  const store = new LocalStore(directory);
  await store.check();
  const of = tablesOf(store);
  await store.put("one/raw.csv", Buffer.from("text"));
  renameSync(directory, `${directory}.away`);
  await expect(of.measure(fileOf("one", "text"))).rejects.toBeInstanceOf(StoreUnavailable);
  renameSync(`${directory}.away`, directory);
  expect(await of.measure(fileOf("one", "text"))).toMatchObject({ num_rows: 1 });
  await store.remove("one/raw.csv");
  await expect(of.preview(fileOf("one", "text"))).rejects.toMatchObject({ status: 503 });
});

test("an artifact whose reading is interrupted each time is given up in the end", async () => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(store);
  for (const name of ["raw", "more"]) await store.put(`killing/${name}.csv`, Buffer.from("text"));
  const reasons: unknown[] = [];
  for (const name of ["raw", "raw", "raw", "more"]) {
    const file = { ...fileOf("killing", "text"), key: `killing/${name}.csv` };
    await of.measure(file).catch((error: unknown) => reasons.push(error));
  }
  const statuses = reasons.map((error) => (error as { status: number }).status);
  expect(statuses).toEqual([503, 503, 422, 422]);
});

test("so is one with other files and folders between those that interrupt", async () => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(store);
  const paths = ["1/killing", "2/good", "3/killing", "4/good", "5/killing", "6/good"];
  const files = paths.map((path) => `a/${path}.csv`);
  for (const key of files) await store.put(key, Buffer.from("text"));
  const stored = files.map((key, place) => {
    return { ...fileOf("a", "text"), key, part: { folder: "a/", place } };
  });
  let tries = 0;
  const measureAll = async (): Promise<number[]> => {
    const statuses: number[] = [];
    tries += 1;
    for (const file of stored) {
      const status = await of.measure(file).then(
        () => 200,
        (error: { status: number }) => error.status,
      );
      if (status === 503) return await measureAll();
      statuses.push(status);
    }
    return statuses;
  };
  expect(await measureAll()).toEqual([422, 200, 422, 200, 422, 200]);
  expect(tries).toBe(3);
});

test("a file is measured once", async () => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(store);
  await store.put("one/raw.csv", Buffer.from("text"));
  const file = fileOf("one", "text");
  expect(await of.measure(file)).toEqual(await of.measure(file));
});

test.each([
  ["a directory", (store: LocalStore) => store],
  ["remote", remote],
])(
  "a tenant's previews from a store that is %s are limited and don't delay others",
  async (_, as) => {
    const store = new LocalStore(join(folder, "store"));
    await store.check();
    const of = tablesOf(as(store));
    const ids = Array.from({ length: 12 }, (_, n) => `file-${n}`);
    for (const id of ids) await store.put(`${id}/raw.csv`, Buffer.from("text"));
    const previews = ids.map((id) => of.preview(fileOf(id, "text")));
    const other = of.preview({ ...fileOf("file-0", "text"), storageId: "x", tenant: "other" });
    // Eight of the first tenant's twelve files are accepted. Tenants are served round-robin, so the
    // other tenant's file does not wait for all of these eight. `count` is the number of files read
    // so far, including the other tenant's. So at most four of the eight were read before it.
    expect((await other).rows[0]?.count).toBeLessThanOrEqual(5);
    const outcomes = await Promise.allSettled(previews);
    const refused = outcomes.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(4);
    expect(refused).toContainEqual(
      expect.objectContaining({ reason: expect.objectContaining({ status: 429 }) }),
    );
    expect(await of.preview(fileOf("file-11", "text"))).toMatchObject({ num_rows: 1 });
  },
);

test("files that wait to be measured do not count as previews", async () => {
  const store = new LocalStore(join(folder, "store"));
  await store.check();
  const of = tablesOf(store);
  const ids = Array.from({ length: 12 }, (_, n) => `file-${n}`);
  for (const id of ids) await store.put(`${id}/raw.csv`, Buffer.from("text"));
  const measured = ids.map((id) => of.measure(fileOf(id, "text")));
  expect(await of.preview(fileOf("file-0", "text"))).toMatchObject({ num_rows: 1 });
  await Promise.all(measured);
});

test("a remote file that is too large for the cache is measured, but has no preview", async () => {
  const store = remote(new LocalStore(join(folder, "store")));
  await store.check();
  const of = tablesOf(store, 3);
  await store.put("one/raw.csv", Buffer.from("text"));
  await expect(of.preview(fileOf("one", "text"))).rejects.toMatchObject({
    code: "preview_too_large",
  });
  expect(await of.measure(fileOf("one", "text"))).toMatchObject({ num_rows: 1 });
  expect(readdirSync(join(folder, "cache/tables"))).toEqual([]);
});

test("only the footer of a remote parquet file is fetched", async () => {
  const store = remote(new LocalStore(join(folder, "store")));
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
