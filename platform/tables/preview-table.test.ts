import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { previewTable } from "./preview-table";
import type { ColumnStatistics, TablePreview } from "./protocol";
import { openSession, query } from "./session";
import type { TableFormat } from "./table-format";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-preview-"));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
  return path;
}

/** Writes the result of a SELECT to a parquet file. */
async function parquet(name: string, select: string): Promise<string> {
  const path = join(folder, name);
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  await connection.run(`copy (${select}) to '${path}' (format parquet)`);
  connection.closeSync();
  return path;
}

const read = (text: string, format: TableFormat): Promise<TablePreview> =>
  previewTable(file(`table.${format}`, text), format);

const dtypesOf = ({ columns }: TablePreview): Record<string, string> =>
  Object.fromEntries(columns.map(({ name, dtype }) => [name, dtype]));

function columnOf({ columns }: TablePreview, name: string): ColumnStatistics {
  const column = columns.find((one) => one.name === name);
  if (!column) throw new Error(`no column ${name}`);
  return column;
}

test.each<[TableFormat, string]>([
  ["csv", 'n,x,s,b,e\n1,1.5,"a, ""b""\nc",true,\n3,,é,false,\n'],
  [
    "jsonl",
    '{"n":1,"x":1.5,"s":"a, \\"b\\"\\nc","b":true,"e":null}\n\n{"n":3,"x":null,"s":"é","b":false}\n',
  ],
])("rows and statistics of %s", async (format, text) => {
  const unknown = { mean: null, stddev: null, approx_distinct: null, min: null, max: null };
  const preview = await read(text, format);
  expect(preview).toMatchObject({
    num_rows: 2,
    truncated: false,
    rows: [
      { n: 1, x: 1.5, s: 'a, "b"\nc', b: true, e: null },
      { n: 3, x: null, s: "é", b: false, e: null },
    ],
  });
  expect(preview.columns).toEqual([
    {
      name: "n",
      dtype: "int64",
      null_count: 0,
      min: 1,
      max: 3,
      mean: 2,
      stddev: Math.SQRT2,
      approx_distinct: 2,
    },
    {
      name: "x",
      dtype: "double",
      null_count: 1,
      min: 1.5,
      max: 1.5,
      mean: 1.5,
      stddev: null,
      approx_distinct: 1,
    },
    {
      ...unknown,
      name: "s",
      dtype: "string",
      null_count: 0,
      min: 'a, "b"\nc',
      max: "é",
      approx_distinct: 2,
      min_length: 1,
      max_length: 8,
      mean_length: 4.5,
    },
    {
      name: "b",
      dtype: "bool",
      null_count: 0,
      min: false,
      max: true,
      mean: 0.5,
      stddev: null,
      approx_distinct: 2,
    },
    expect.objectContaining({ name: "e", dtype: "null", null_count: 2, min: null, max: null }),
  ]);
});

test("parquet's types are converted to JSON", async () => {
  const path = await parquet(
    "types.parquet",
    `select 9007199254740993::bigint as big, 'nan'::double as nan, 0.1::float as f, '12.50'::decimal(9,2) as d,
     '\\x00\\xff'::blob as bytes, timestamp '2024-01-02 03:04:05.678' as at, date '2024-01-02' as day,
     timestamptz '2024-01-02 03:04:05+00' as utc, [1, 2] as l, {'a': 'nan'::double, 'b': [9007199254740993]} as s,
     map {'k': 1} as m, '8c2d1a0e-1111-4222-8333-abcdefabcdef'::uuid as u
     from range(2)`,
  );
  const preview = await previewTable(path, "parquet");
  expect(dtypesOf(preview)).toEqual({
    big: "int64",
    nan: "double",
    f: "float",
    d: "decimal",
    bytes: "binary",
    at: "timestamp",
    day: "date",
    utc: "timestamp",
    l: "list",
    s: "struct",
    m: "map",
    u: "uuid",
  });
  expect(preview.rows[0]).toEqual({
    big: "9007199254740993",
    nan: null,
    f: 0.1,
    d: 12.5,
    bytes: { bytes: 2 },
    at: "2024-01-02T03:04:05.678",
    day: "2024-01-02",
    utc: "2024-01-02T03:04:05Z",
    l: [1, 2],
    s: { a: null, b: ["9007199254740993"] },
    m: { k: 1 },
    u: "8c2d1a0e-1111-4222-8333-abcdefabcdef",
  });
  expect(columnOf(preview, "nan")).toMatchObject({ null_count: 0, min: null, mean: null });
  expect(columnOf(preview, "at").max).toBe("2024-01-02T03:04:05.678");
});

test.each([
  ["values ('infinity'::double), (1), (3), ('nan')", { min: 1, max: 3, mean: 2, null_count: 0 }],
  ["values (1e308::double), (-1e308)", { min: -1e308, max: 1e308, mean: 0, stddev: null }],
  ["values (1e308::double), (1e308)", { mean: null, stddev: 0 }],
])("numbers of %s", async (values, expected) => {
  const path = await parquet("numbers.parquet", `select * from (${values}) t(x)`);
  expect(columnOf(await previewTable(path, "parquet"), "x")).toMatchObject(expected);
});

const NAMES = [
  'a"b',
  "x'y",
  "$1",
  "; drop table t; --",
  "A",
  "a",
  "c0",
  "*",
  "__proto__",
  "a/b",
  "~1",
  "é\n",
];

test.each<[TableFormat, (names: string[]) => string]>([
  [
    "csv",
    (names) =>
      `${names.map((name) => `"${name.replaceAll('"', '""')}"`).join()}\n${names.map((_, n) => n).join()}\n`,
  ],
  ["jsonl", (names) => JSON.stringify(Object.fromEntries(names.map((name, n) => [name, n])))],
])("columns of %s may have any name", async (format, write) => {
  const preview = await read(write(NAMES), format);
  expect(preview.columns.map(({ name, min }) => [name, min])).toEqual(
    NAMES.map((name, n) => [name, n]),
  );
  expect(Object.entries(preview.rows[0] ?? {})).toEqual(NAMES.map((name, n) => [name, n]));
});

test("parquet columns may differ by case only", async () => {
  // SQL can't write such a file. So write other column names, and change one in the file's bytes.
  const path = await parquet(
    "case.parquet",
    "select 1 as name_one, 2 as NAME_two, [{'a': 1}] as z, 3 as w",
  );
  const bytes = readFileSync(path);
  const renamed = Buffer.from(
    bytes.toString("latin1").replaceAll("NAME_two", "NAME_ONE"),
    "latin1",
  );
  const { columns } = await previewTable(file("case.parquet", renamed), "parquet");
  expect(columns.map(({ name }) => name)).toEqual(["name_one", "NAME_ONE", "z", "w"]);
});

test("a file may have any name", async () => {
  for (const name of ["a[b]*.csv", "?.csv", "it's.csv", "*.csv", "x.csv.gz/y.csv", "k=v/z.csv"]) {
    const path = file(`names/${name}`, `a\n"${name}"\n`);
    expect((await previewTable(path, "csv")).rows).toEqual([{ a: name }]);
  }
});

test("no statement can read another file, or lift this restriction", async () => {
  const other = file("other.csv", "a\n1\n");
  const session = await openSession(file("mine.csv", "a\n2\n"));
  for (const sql of [
    `select * from read_csv('${other}'), read_csv($1)`,
    `select * from read_text('/etc/hostname'), read_csv($1)`,
    `select * from glob('${folder}/*'), read_csv($1)`,
    `select * from read_csv('https://example.org/x.csv'), read_csv($1)`,
  ]) {
    await expect(query(session, sql)).rejects.toThrow(/disabled|extension/i);
  }
  const { connection } = session;
  for (const sql of [
    "set enable_external_access = true",
    `set allowed_paths = ['${other}']`,
    `copy (select 1) to '${folder}/out.csv'`,
    `attach '${folder}/x.db'`,
    "install httpfs",
    "set memory_limit = '100GB'",
  ]) {
    await expect(connection.run(sql)).rejects.toThrow();
  }
  expect(await query(session, "select * from read_csv($1)")).toEqual([[2n]]);
  session.close();
});

test("long texts are cut and marked; a preview that is too large has fewer rows", async () => {
  const long = "é".repeat(5_000);
  const preview = await read(
    [
      JSON.stringify({ t: long, l: [long], j: Array(9_000).fill(1) }),
      ...Array(60).fill('{"t":"x"}'),
    ].join("\n"),
    "jsonl",
  );
  expect(preview.rows).toHaveLength(50);
  expect(preview.rows[0]).toMatchObject({
    t: `${"é".repeat(2_000)}… [cut]`,
    l: [`${"é".repeat(2_000)}… [cut]`],
  });
  expect(columnOf(preview, "t")).toMatchObject({
    max: `${"é".repeat(256)}… [cut]`,
    max_length: 5_000,
  });

  const row = `${Array(40).fill("y".repeat(1_900)).join()}\n`;
  const wide = await read(
    `${Array.from({ length: 40 }, (_, n) => n).join()}\n${row.repeat(60)}`,
    "csv",
  );
  expect(wide).toMatchObject({ num_rows: 60, truncated: true });
  expect(Buffer.byteLength(JSON.stringify(wide))).toBeLessThan(1024 * 1024 + 100);
  expect(wide.rows.length).toBeGreaterThan(5);
});

test("later rows may have other types than the first ones", async () => {
  const csv = await read(`a,b\n${"1,2\n".repeat(60_000)}x,2.5\n`, "csv");
  expect([csv.num_rows, dtypesOf(csv)]).toEqual([60_001, { a: "string", b: "double" }]);
  const jsonl = await read(`${'{"a":1}\n'.repeat(60_000)}{"a":"x","b":2}\n`, "jsonl");
  expect([jsonl.num_rows, dtypesOf(jsonl)]).toEqual([60_001, { a: "mixed", b: "int64" }]);
});

test("a table with many columns is read in several passes", async () => {
  const names = Array.from({ length: 130 }, (_, n) => `column ${n}`);
  const rows = [1, 2].map((by) => names.map((_, n) => n * by));
  const preview = await read([names, ...rows].map((row) => `${row.join()}\n`).join(""), "csv");
  expect(preview.columns.map(({ name, max }) => [name, max])).toEqual(
    names.map((name, n) => [name, n * 2]),
  );
  expect(Object.values(preview.rows[1] ?? {})).toEqual(rows[1]);
});

test.each<[TableFormat, string, RegExp]>([
  ["jsonl", '{"a":1}\n{"a":', /^row 2 is not JSON/],
  ["jsonl", "[1]\n[2]\n", /^row 1 is not a JSON object/],
  ["csv", "a,b\n1,2,3\n", /^row 2 has 3 fields, and the header 2$/],
  ["parquet", "PAR1 nothing of the kind PAR1", /parquet|footer|file/i],
])("%s %j is refused", async (format, text, says) => {
  await expect(read(text, format)).rejects.toThrow(says);
});
