import {
  formatBytes,
  formatDuration,
  formatMeasured,
  formatUsd,
  inOneDirection,
  plural,
} from "./format";

test.each([
  [null, "–"],
  [0, "0 ms"],
  [840, "840 ms"],
  [999.6, "999 ms"],
  [9_990, "9.9 s"],
  [59_700, "59 s"],
  [200_000, "3 min 20 s"],
  [7_500_000, "2 h 5 min"],
  [86_400_000 * 7, "7 d"],
  [Number.NaN, "–"],
])("%s ms is %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test.each([
  [0, "$0.00", "$0.000000"],
  [0.004, "< $0.01", "$0.004000"],
  [1234.5, "$1,234.50", "$1,234.500000"],
  [null, "–", "–"],
])("%s USD is %s, or %s", (usd, short, long) => {
  expect([formatUsd(usd), formatUsd(usd, 6)]).toEqual([short, long]);
});

test.each([
  [0, "0"],
  [0.9, "0.9"],
  [8_030_000_000, "8,030,000,000"],
  [0.0002, "0.0002"],
  [5e-7, "5e-7"],
  [-1.23456789e-5, "-0.0000123457"],
  [null, "–"],
])("a reported %s is %s", (value, text) => {
  expect(formatMeasured(value)).toBe(text);
});

test("bytes have the unit of their size", () => {
  expect([999, 1000, 4_516_339, 123_000_000_000, null].map(formatBytes)).toEqual([
    "999 B",
    "1 kB",
    "4.5 MB",
    "123 GB",
    "–",
  ]);
});

test("singular and plural", () => {
  expect([plural(1, "row"), plural(2000, "row"), plural(2, "try", "tries")]).toEqual([
    "1 row",
    "2,000 rows",
    "2 tries",
  ]);
});

test("a name can't reverse other text, and may be written from right to left", () => {
  expect(inOneDirection("\u202egnp.evil")).toBe("gnp.evil");
  expect(inOneDirection("\u2069\u202ex\u202c")).toBe("x");
  expect(inOneDirection("בדיקה")).toBe("בדיקה");
});
