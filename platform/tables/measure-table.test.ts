import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TableFacts } from "./facts";
import { measureTable } from "./measure-table";
import type { TableFormat } from "./table-format";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-measure-"));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function measure(format: TableFormat, content: string | Buffer): Promise<TableFacts> {
  const path = join(folder, `table.${format}`);
  writeFileSync(path, content);
  return measureTable(path, format);
}

const columns = (types: Record<string, string>) =>
  Object.entries(types).map(([name, dtype]) => ({ name, dtype }));

test.each<[TableFormat, string, number, Record<string, string>]>([
  [
    "csv",
    'q,n,x,e\r\n"a, ""b""\nc",1,1.5,\r\né,2,3,\r\n',
    2,
    { q: "string", n: "int64", x: "double", e: "null" },
  ],
  ["csv", '\ufeffa,"b\nc"\n+5,TRUE\n-6,false', 2, { a: "int64", "b\nc": "bool" }],
  ["csv", "\n\na,b\n1,.5\n\n2,1e5\n", 2, { a: "int64", b: "double" }],
  ["csv", 'a,b\n1,"x\r\ny"\n2,z\n', 2, { a: "int64", b: "string" }],
  ["csv", "a,b\r1,2\r3,4", 2, { a: "int64", b: "int64" }],
  ["csv", `a\n${"1\n".repeat(70_000)}x\n`, 70_001, { a: "string" }],
  ["csv", "a\n123456789012345678\n1234567890123456789\n", 2, { a: "double" }],
  ["csv", "a,b\n", 0, { a: "null", b: "null" }],
  [
    "jsonl",
    '{"q":"é","n":1}\n\n{"n":1.5,"l":[1]}\r\n{"n":null,"m":1}\n{"m":"x"}',
    4,
    { q: "string", n: "double", l: "list", m: "mixed" },
  ],
  ["jsonl", '\ufeff{"a":1}\n{"a":2}\n', 2, { a: "int64" }],
  ["jsonl", "{}\n{}\n", 2, {}],
  ["jsonl", "", 0, {}],
  ["jsonl", `${'{"a":1}\n'.repeat(70_000)}{"b":{"c":1}}\n`, 70_001, { a: "int64", b: "struct" }],
])("%s, case %#: rows are counted and columns named", async (format, text, numRows, types) => {
  expect(await measure(format, text)).toEqual({ numRows, columns: columns(types) });
});

const WIDE = Array.from({ length: 2_001 }, (_, n) => `c${n}`);

test.each<[TableFormat, string | Buffer, RegExp]>([
  ["csv", "a,b\n1\n", /^row 2 has 1 field, and the header 2$/],
  ["csv", 'a,b\n1,"x\ny"\n3,4,5\n', /^row 3 has 3 fields, and the header 2$/],
  ["csv", `a,b\n${"1,2\n".repeat(70_000)}3\n`, /^row 70002 has 1 field/],
  ["csv", 'a\n"x\n', /^row 2 is not well-formed CSV/],
  ["csv", 'a,b\n"x"y,2\n', /^row 2 is not well-formed CSV/],
  ["csv", '"a\n1\n', /^row 1 is not well-formed CSV/],
  ["csv", "a,a\n1,2\n", /^row 1 names a column twice/],
  ["csv", "a,\n1,2\n", /^row 1 names a column twice, or not at all/],
  ["csv", `${"x".repeat(300)}\n1\n`, /a column whose name is longer than/],
  ["csv", `${WIDE.join()}\n`, /more than 2000 columns/],
  ["csv", "a,b\n1,2\r\n3,4\n", /mixes line endings/],
  ["csv", Buffer.from("a\n1\n\xff\n", "latin1"), /^row \d+ is not UTF-8/],
  ["csv", "", /has no header/],
  ["jsonl", `{"${"x".repeat(300)}":1}`, /a column whose name is longer than/],
  ["jsonl", '{"a":1}\n{"\\u0000":1}', /a column whose name holds NUL/],
  ["jsonl", JSON.stringify(Object.fromEntries(WIDE.map((name) => [name, 1]))), /more than 2000/],
  ["jsonl", '{"a":1}\n[1]\n', /^row 2 is not a JSON object$/],
  ["jsonl", '{"a":1}\nnull\n{', /^row 2 is not a JSON object$/],
  ["jsonl", '{"a":1}\n\n{"a":', /^row 3 is not JSON in UTF-8$/],
  ["jsonl", '{"a":1}{"a":2}\n', /^row 1 is not JSON in UTF-8$/],
  ["jsonl", `${'{"a":1}\n'.repeat(70_000)}{"a"\n`, /^row 70001 is not JSON/],
  ["jsonl", Buffer.from('{"a":1}\n{"a":"\xff"}\n', "latin1"), /^row 2 is not .*UTF-8$/],
  ["parquet", "PAR1", /does not end like a parquet file/],
  ["parquet", "PAR1 nothing of the kind PAR1", /footer is longer than the file/],
])("%s, case %#, is refused with the row at fault, if any", async (format, text, says) => {
  const outcome = await measure(format, text).then(
    () => ({ message: "accepted", row: undefined }),
    ({ message, row }: Error & { row?: number }) => ({ message, row }),
  );
  const row = /^row (\d+)/.exec(outcome.message)?.[1];
  expect(outcome).toEqual({
    message: expect.stringMatching(says),
    row: row === undefined ? undefined : Number(row),
  });
});
