import fc from "fast-check";
import { ForgeError } from "../../core/errors";
import { CsvReader } from "./csv";
import { NdjsonReader } from "./ndjson";
import type { TableFacts, TableReader } from "./table";

const READERS: Record<string, () => TableReader> = {
  csv: () => new CsvReader(),
  ndjson: () => new NdjsonReader(),
};

/** Reads a text in pieces that are cut at these bytes. */
async function read(format: string, text: string, cuts: number[] = []): Promise<TableFacts> {
  const reader = READERS[format]?.();
  if (!reader) throw new Error(`no reader of ${format}`);
  const bytes = Buffer.from(text);
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let start = 0;
  for (const end of ends) {
    await reader.push(bytes.subarray(start, end));
    start = end;
  }
  return await reader.end();
}

const refusal = async (format: string, text: string): Promise<string> =>
  await read(format, text).then(
    () => "taken",
    (error: unknown) => (error instanceof ForgeError ? error.message : String(error)),
  );

const TABLES: Record<string, [text: string, facts: TableFacts]> = {
  csv: [
    'q,n,x,e\r\n"a, ""b""\nc",1,1.5,\r\né,2,3,\r\n',
    {
      numRows: 2,
      columns: [
        { name: "q", dtype: "string" },
        { name: "n", dtype: "int64" },
        { name: "x", dtype: "double" },
        { name: "e", dtype: "null" },
      ],
    },
  ],
  ndjson: [
    '{"q":"é","n":1}\n\n{"n":1.5,"l":[1]}\r\n{"n":null,"m":1}\n{"m":"x"}',
    {
      numRows: 4,
      columns: [
        { name: "q", dtype: "string" },
        { name: "n", dtype: "double" },
        { name: "l", dtype: "list" },
        { name: "m", dtype: "mixed" },
      ],
    },
  ],
};

test.each(Object.keys(TABLES))(
  "%s is read the same, however it is cut into pieces",
  async (format) => {
    const [text, facts] = TABLES[format] ?? ["", undefined];
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(200), { maxLength: 8 }), async (cuts) => {
        expect(await read(format, text, cuts)).toEqual(facts);
      }),
    );
  },
);

test.each([
  ["csv", "a,b\n1\n", /^row 2 has 1 field, and the header 2$/],
  ["csv", 'a\n"x\n', /not well-formed CSV/],
  ["csv", "a,a\n1,2\n", /^row 1 names a column twice/],
  ["csv", "a,\n1,2\n", /^row 1 names a column twice, or not at all/],
  ["csv", `${"x".repeat(300)}\n1\n`, /^row 1 has a name of more than/],
  ["ndjson", `{"${"x".repeat(300)}":1}`, /^row 1 has a name of more than/],
  ["ndjson", '{"a":1}\n{"\\u0000":1}', /^row 2 has a name with NUL/],
  ["csv", `${Array.from({ length: 2001 }, (_, n) => n).join()}\n`, /^row 1 has more than 2000/],
  ["ndjson", '{"a":1}\n[1]\n', /^row 2 is not a JSON object/],
  ["ndjson", '{"a":1}\n\n{"a":', /^row 3 is not JSON/],
])("%s %j is refused by its row", async (format, text, says) => {
  expect(await refusal(format, text)).toMatch(says);
});

test.each(["csv", "ndjson"])(
  "whatever comes as %s is read or refused, and nothing else",
  async (format) => {
    const bytes = fc.oneof(fc.string({ unit: "binary", maxLength: 2000 }), fc.json());
    const repeated = fc.tuple(bytes, fc.constantFrom(1, 50), fc.constantFrom("", "\n", ",", '"'));
    await fc.assert(
      fc.asyncProperty(repeated, async ([text, times, between]) => {
        const outcome = await read(format, `${text}${between}`.repeat(times), [100]).catch(
          (error: unknown) => error,
        );
        if (outcome instanceof Error) expect(outcome).toBeInstanceOf(ForgeError);
      }),
      { numRuns: 300 },
    );
  },
);

test("a line without an end does not fill the memory", async () => {
  const reader = new NdjsonReader();
  const piece = Buffer.alloc(1024 * 1024, 0x20);
  expect(() => {
    for (let n = 0; n < 20; n++) reader.push(piece);
  }).toThrow(/row 1 is longer/);
});
