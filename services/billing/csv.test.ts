import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { csvOf } from "./csv";

test("the header comes first, lines end as RFC 4180 says, and null is nothing", () => {
  const rows = [{ id: "a", cost: "1.50", gpus: null, billed: true }];
  expect(csvOf(["id", "cost", "gpus", "billed"], rows)).toBe(
    "id,cost,gpus,billed\r\na,1.50,,true\r\n",
  );
  expect(csvOf(["id"], [])).toBe("id\r\n");
  expect(csvOf(["id"], [{ id: 1 }], { header: false })).toBe("1\r\n");
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])("%j is no formula", (id) => {
  const [row] = parse(csvOf(["id"], [{ id }]), { columns: true }) as { id: string }[];
  expect(row?.id).toBe(`'${id}`);
});

test("a number below zero stays one", () => {
  expect(csvOf(["n"], [{ n: -1.5 }])).toBe("n\r\n-1.5\r\n");
});

test("whatever is written is read again", () => {
  const plain = fc.string({ unit: "binary" }).filter((text) => !/^[=+\-@\t\r＝＋－＠]/.test(text));
  fc.assert(
    fc.property(fc.array(fc.record({ a: plain, b: plain }), { minLength: 1 }), (rows) => {
      expect(parse(csvOf(["a", "b"], rows), { columns: true })).toEqual(rows);
    }),
  );
});
