import { slowExpressions } from "./regular-expressions";

test.each([
  // This expression once blocked a server for seven seconds, on 60 kB of digits.
  String.raw`/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/`,
  "/(a+)+b/",
  String.raw`/\/+$/`,
])("%s is slow", (literal) => {
  const found = slowExpressions(
    `const one = 1;\nexport const slow = { at: [${literal}] };\n`,
    "x.ts",
  );
  expect(found).not.toEqual([]);
  for (const { at, literal: named } of found) expect([at, named]).toEqual(["x.ts:2", literal]);
});

test("an expression that can match in only one way is not slow", () => {
  const source = String.raw`const fine = [/(?<!\/)\/+$/, /^[a-z]+$/, /^\d{1,18}(?:\.\d+)?$/u];`;
  expect(slowExpressions(source, "x.ts")).toEqual([]);
});
