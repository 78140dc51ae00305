import { reportedMetrics } from "./reported-metrics";

test.each([
  [
    { loss: 0.5, "eval/acc": 1, step: 3 },
    { loss: 0.5, "eval/acc": 1, step: 3 },
  ],
  [{ loss: "0.5", gpu: null, a: [1], b: Number.NaN, c: Number.POSITIVE_INFINITY }, {}],
  [{ "": 1, "with space": 1, _x: 1, [`a${"b".repeat(64)}`]: 1 }, {}],
  [JSON.parse('{"__proto__": 1, "loss": 2}'), { loss: 2 }],
  [[1, 2], {}],
  ["loss", {}],
  [null, {}],
  [undefined, {}],
])("reported metrics of %j", (given, expected) => {
  expect(reportedMetrics(given)).toEqual(expected);
});

test("at most 32 metrics are kept", () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`m${n}`, n]));
  expect(Object.keys(reportedMetrics(many))).toHaveLength(32);
});
