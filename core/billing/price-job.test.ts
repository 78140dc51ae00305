import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Decimal } from "decimal.js";
import fc from "fast-check";
import { JOB_TYPES, type JobType } from "../jobs/job-types";
import { type Portion, priceJob, priceStorage, roundUsd } from "./price-job";
import {
  DEFAULT_RATE_CARD,
  gpuHourPrice,
  METERED_RATE_CARD,
  pricesSchema,
  type RateCard,
  type WorkCard,
} from "./rate-card";
import { NO_USAGE, type Usage } from "./usage";

const portion = (usage: Partial<Usage>, ...gpu: string[]): Portion => ({
  usage: { ...NO_USAGE, ...usage },
  gpu_tokens: gpu,
});

/** Formulas and default prices of spec.md 2.5: job type, usage, line of the bill, amount in USD. */
test.each<[JobType, Partial<Usage>, string, string]>([
  ["generate", {}, "generation", "0"],
  ["generate", { tokens_generated: 1 }, "generation", "0"],
  ["generate", { tokens_generated: 2 }, "generation", "0.000001"],
  ["generate", { tokens_generated: 999_999 }, "generation", "0.3"],
  ["generate", { tokens_generated: 1_000_000 }, "generation", "0.3"],
  ["generate", { tokens_generated: 2_500_000 }, "generation", "0.75"],
  ["generate", { tokens_generated: 1e15 }, "generation", "300000000"],
  ["distill", { tokens_generated: 1_000_000 }, "generation", "0.3"],
  ["distill", { tokens_generated: 1_666_667 }, "generation", "0.5"],
  ["audit", { rows_processed: 0 }, "audit", "0"],
  ["audit", { rows_processed: 1 }, "audit", "0.0002"],
  ["audit", { rows_processed: 1_000 }, "audit", "0.2"],
  ["audit", { rows_processed: 1e12 }, "audit", "200000000"],
  ["train", { gpu_hours: 1 }, "gpu", "2.5"],
  ["train", { gpu_hours: 0.000_000_1 }, "gpu", "0"],
  ["train", { gpu_hours: 0.000_000_2 }, "gpu", "0.000001"],
  ["train", { gpu_hours: 1e8 }, "gpu", "250000000"],
  ["evaluate", { samples_evaluated: 1 }, "eval", "0.001"],
  ["evaluate", { samples_evaluated: 250 }, "eval", "0.25"],
  ["deploy", { deployment_lifetime_days: 30 }, "deploy", "2"],
  ["deploy", { deployment_lifetime_days: 45 }, "deploy", "3"],
  ["deploy", { deployment_lifetime_days: 1 }, "deploy", "0.066667"],
  ["deploy", { deployment_lifetime_days: 0 }, "deploy", "0"],
])("default: %s of %j costs %s %s", (type, usage, line, total) => {
  const bill = priceJob(type, [portion(usage)], DEFAULT_RATE_CARD);
  expect(bill.totalCostUsd).toBe(total);
  expect(bill.costBreakdown).toEqual({
    ...{ gpu: "0", generation: "0", audit: "0", eval: "0", deploy: "0" },
    [line]: total,
  });
  expect(bill.formula).toContain(`= ${total} USD`);
});

/** Prices by consumption: for each job type and usage, the costs and their total in USD. */
test.each<[JobType, Partial<Usage>, Record<string, string>, string]>([
  ["generate", { tokens_generated: 1e6 }, {}, "0"],
  ["generate", { output_tokens: 1_000_000 }, { output_tokens: "30" }, "30"],
  ["distill", { input_tokens: 1_000_000 }, { input_tokens: "10" }, "10"],
  ["audit", { rows_processed: 1e9, input_tokens: 1 }, { input_tokens: "0.00001" }, "0.00001"],
  ["train", { gpu_hours: 1.5 }, { gpu: "3.75" }, "3.75"],
  [
    "evaluate",
    { gpu_hours: 0.1, input_tokens: 2_000, output_tokens: 1_000, samples_evaluated: 100 },
    { gpu: "0.25", input_tokens: "0.02", output_tokens: "0.03" },
    "0.3",
  ],
  ["deploy", { gpu_hours: 0.2, deployment_lifetime_days: 300 }, { gpu: "0.5" }, "0.5"],
])("metered: %s of %j costs %j", (type, usage, lines, total) => {
  const bill = priceJob(type, [portion(usage)], METERED_RATE_CARD);
  expect(bill.totalCostUsd).toBe(total);
  expect(bill.costBreakdown).toMatchObject(lines);
  const spent = Object.entries(bill.costBreakdown).filter(([, usd]) => usd !== "0");
  expect(Object.fromEntries(spent)).toEqual(lines);
});

test("storage costs 0.02 per GB and month, or nothing if the card has no storage price", () => {
  expect(priceStorage(1, METERED_RATE_CARD).toFixed()).toBe("0.02");
  expect(priceStorage("0.000025", METERED_RATE_CARD).toFixed()).toBe("0.000001");
  expect(priceStorage("0.000024", METERED_RATE_CARD).toFixed()).toBe("0");
  expect(priceStorage(1e6, DEFAULT_RATE_CARD).toFixed()).toBe("0");
});

test.each([
  [["a100", "nvidia", "sxm4"], "1.25"],
  [["h100", "nvidia"], "2.50"],
  [[], "2.50"],
  // A GPU's name may contain any word, even `default` or the name of an object property.
  [["default"], "2.50"],
  [["constructor"], "2.50"],
])("a GPU hour on %j costs %s", (tokens, price) => {
  const bill = priceJob("train", [portion({ gpu_hours: 1 }, ...tokens)], DEFAULT_RATE_CARD);
  expect(bill.unitCosts.gpu_hour).toBe(price);
  expect(new Decimal(bill.totalCostUsd).equals(price)).toBe(true);
});

test("if several words match a GPU name, the longest wins, then alphabetical order", () => {
  const prices = { a100: "1.25", "80gb": "9", a10080gb: "3", default: "2" };
  const cards = [prices, Object.fromEntries(Object.entries(prices).reverse())].map(
    (gpuHour): RateCard => ({ ...DEFAULT_RATE_CARD, gpuHour: gpuHour as WorkCard["gpuHour"] }),
  );
  expect(cards.map((card) => gpuHourPrice(card, ["a100", "80gb"]))).toEqual(["9", "9"]);
  expect(cards.map((card) => gpuHourPrice(card, ["a100", "a10080gb"]))).toEqual(["3", "3"]);
});

test("distillation may have its own price", () => {
  const card: WorkCard = { ...DEFAULT_RATE_CARD, distillPer1mTokens: "0.50" };
  const bill = priceJob("distill", [portion({ tokens_generated: 1e6 })], card);
  expect([bill.totalCostUsd, bill.unitCosts.generation_per_1m_tokens]).toEqual(["0.5", "0.50"]);
  expect(priceJob("generate", [portion({ tokens_generated: 1e6 })], card).totalCostUsd).toBe("0.3");
});

test("each attempt is priced by its own GPU", () => {
  const bill = priceJob(
    "train",
    [portion({ gpu_hours: 1 }, "a100"), portion({ gpu_hours: 2 }, "h100")],
    DEFAULT_RATE_CARD,
  );
  expect(bill.totalCostUsd).toBe("6.25");
  expect(bill.formula).toBe("1 GPU hours x 1.25 + 2 GPU hours x 2.50 = 6.25 USD");
});

test("amounts are rounded half up to millionths", () => {
  const rounded = ["0.0000005", "0.00000049999", "1.2345675"].map((usd) =>
    roundUsd(new Decimal(usd)).toFixed(),
  );
  expect(rounded).toEqual(["0.000001", "0", "1.234568"]);
});

test("the migration inserts the same rate cards as the code", () => {
  const file = join(__dirname, "../../platform/postgres/migrations/0013_billing.sql");
  const sql = readFileSync(file, "utf8");
  for (const { name, version, ...prices } of [DEFAULT_RATE_CARD, METERED_RATE_CARD]) {
    const written = new RegExp(`\\('${name}', ${version}, '[^']+', '([^']+)'`).exec(sql)?.[1];
    expect(pricesSchema.parse(JSON.parse(written ?? "null"))).toEqual(prices);
  }
});

const amount = fc.double({ min: 0, max: 1e12, noNaN: true, noDefaultInfinity: true });
const usages: fc.Arbitrary<Usage> = fc.record({
  gpu_hours: amount,
  tokens_generated: amount,
  input_tokens: amount,
  output_tokens: amount,
  rows_processed: amount,
  samples_evaluated: amount,
  deployment_lifetime_days: amount,
});
const cards = fc.constantFrom<RateCard>(DEFAULT_RATE_CARD, METERED_RATE_CARD);
const types = fc.constantFrom(...JOB_TYPES);

test("a total is the sum of its breakdown, never negative, with at most six decimals", () => {
  fc.assert(
    fc.property(
      types,
      fc.array(usages, { minLength: 1, maxLength: 3 }),
      cards,
      (type, used, card) => {
        const bill = priceJob(
          type,
          used.map((usage) => portion(usage)),
          card,
        );
        const parts = Object.values(bill.costBreakdown).map((part) => new Decimal(part));
        const total = new Decimal(bill.totalCostUsd);
        expect(Decimal.sum(...parts).equals(total)).toBe(true);
        expect(total.isNegative()).toBe(false);
        expect(total.decimalPlaces()).toBeLessThanOrEqual(6);
      },
    ),
  );
});

test("more usage never costs less", () => {
  const factor = fc.double({ min: 1, max: 10, noNaN: true });
  fc.assert(
    fc.property(types, usages, factor, cards, (type, usage, by, card) => {
      const more = Object.fromEntries(
        Object.entries(usage).map(([name, value]) => [name, value * by]),
      ) as unknown as Usage;
      const [less, then] = [usage, more].map(
        (each) => new Decimal(priceJob(type, [portion(each)], card).totalCostUsd),
      );
      expect(then?.gte(less ?? 0)).toBe(true);
    }),
  );
});
