import { Decimal } from "decimal.js";
import fc from "fast-check";
import { JOB_TYPES } from "./job-types";
import { DEFAULT_RATE_CARD, priceJob, type Usage } from "./pricing";

const nothing: Usage = {
  gpu_hours: 0,
  tokens_generated: 0,
  rows_processed: 0,
  samples_evaluated: 0,
  deployment_lifetime_days: 0,
};

test.each([
  ["generate", { tokens_generated: 2_500_000 }, "0.75", "generation"],
  ["distill", { tokens_generated: 1_000_000 }, "0.3", "generation"],
  ["audit", { rows_processed: 2_000 }, "0.4", "audit"],
  ["train", { gpu_hours: 1.5 }, "3.75", "gpu"],
  ["evaluate", { samples_evaluated: 250 }, "0.25", "eval"],
  ["deploy", { deployment_lifetime_days: 45 }, "3", "deploy"],
] as const)("%s is priced by the specification's formula", (type, usage, total, line) => {
  const bill = priceJob(type, { ...nothing, ...usage }, DEFAULT_RATE_CARD);
  expect(bill.totalCostUsd).toBe(total);
  expect(bill.costBreakdown[line]).toBe(total);
  expect(bill.formula).toContain(`= ${total} USD`);
});

test.each([
  [["a100", "nvidia", "sxm4"], "1.25"],
  [["h100", "nvidia"], "2.50"],
  [[], "2.50"],
])("a GPU hour on %j costs %s", (tokens, price) => {
  const bill = priceJob("train", { ...nothing, gpu_hours: 1 }, DEFAULT_RATE_CARD, tokens);
  expect(bill.unitCosts.gpu_hour).toBe(price);
});

const amount = fc.double({ min: 0, max: 1e12, noNaN: true, noDefaultInfinity: true });
const usages = fc.record({
  gpu_hours: amount,
  tokens_generated: amount,
  rows_processed: amount,
  samples_evaluated: amount,
  deployment_lifetime_days: amount,
});

test("a bill is its breakdown's sum, never negative, and has at most six decimals", () => {
  fc.assert(
    fc.property(fc.constantFrom(...JOB_TYPES), usages, (type, usage) => {
      const bill = priceJob(type, usage, DEFAULT_RATE_CARD);
      const parts = Object.values(bill.costBreakdown).map((part) => new Decimal(part));
      const total = new Decimal(bill.totalCostUsd);
      expect(Decimal.sum(...parts).equals(total)).toBe(true);
      expect(total.isNegative()).toBe(false);
      expect(total.decimalPlaces()).toBeLessThanOrEqual(6);
    }),
  );
});

test("more usage never costs less", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...JOB_TYPES),
      usages,
      fc.double({ min: 1, max: 10, noNaN: true }),
      (type, usage, by) => {
        const more = Object.fromEntries(
          Object.entries(usage).map(([name, value]) => [name, value * by]),
        ) as unknown as Usage;
        const [less, then] = [usage, more].map(
          (each) => new Decimal(priceJob(type, each, DEFAULT_RATE_CARD).totalCostUsd),
        );
        expect(then?.gte(less ?? 0)).toBe(true);
      },
    ),
  );
});
