import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { csvOf } from "./csv";

test("the header comes first, lines end with CRLF (RFC 4180), and null is an empty field", () => {
  const rows = [{ id: "a", cost: "1.50", gpus: null, billed: true }];
  expect(csvOf(["id", "cost", "gpus", "billed"], rows)).toBe(
    "id,cost,gpus,billed\r\na,1.50,,true\r\n",
  );
  expect(csvOf(["id"], [])).toBe("id\r\n");
  expect(csvOf(["id"], [{ id: 1 }], { header: false })).toBe("1\r\n");
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])(
  "%j is escaped, so that spreadsheets don't read it as a formula",
  (id) => {
    const [row] = parse(csvOf(["id"], [{ id }]), { columns: true }) as { id: string }[];
    expect(row?.id).toBe(`'${id}`);
  },
);

test("a negative number is not escaped", () => {
  expect(csvOf(["n"], [{ n: -1.5 }])).toBe("n\r\n-1.5\r\n");
});

test("parsing the output returns the input", () => {
  const plain = fc.string({ unit: "binary" }).filter((text) => !/^[=+\-@\t\r＝＋－＠]/.test(text));
  fc.assert(
    fc.property(fc.array(fc.record({ a: plain, b: plain }), { minLength: 1 }), (rows) => {
      expect(parse(csvOf(["a", "b"], rows), { columns: true })).toEqual(rows);
    }),
  );
});
