import { Decimal } from "decimal.js";
import fc from "fast-check";
import { type MonthShare, splitByMonth, withDays } from "./accrual";
import { type Accruing, accruedIn, projectJobs, stillToAccrue } from "./month";
import { priceJob } from "./price-job";
import { DEFAULT_RATE_CARD, METERED_RATE_CARD, type RateCard } from "./rate-card";
import { NO_USAGE } from "./usage";

const cards = fc.constantFrom<RateCard>(DEFAULT_RATE_CARD, {
  ...METERED_RATE_CARD,
  deployPerMonth: "17.77",
});

test("splitting a bill by month never changes its total", () => {
  const lives = fc.array(fc.double({ min: 0, max: 40, noNaN: true }), {
    minLength: 1,
    maxLength: 30,
  });
  const hours = fc.double({ min: 0, max: 100, noNaN: true });
  fc.assert(
    fc.property(lives, hours, cards, (pieces, gpuHours, card) => {
      const portions = [{ usage: { ...NO_USAGE, gpu_hours: gpuHours }, gpu_tokens: ["h100"] }];
      let days = 0;
      const lived = pieces.map((piece, at) => {
        days = Number((days + piece).toFixed(9));
        return { month: `month ${at}`, days };
      });
      const shares = splitByMonth("deploy", portions, card, lived).map((one) => one.costUsd);
      const whole = priceJob("deploy", withDays(portions, days), card).totalCostUsd;
      expect(Decimal.sum(...shares).toFixed()).toBe(whole);
      for (const share of shares) expect(new Decimal(share).isNegative()).toBe(false);
      // The shares of earlier months don't change while the deployment continues.
      const earlier = splitByMonth("deploy", portions, card, lived.slice(0, -1));
      expect(earlier.map((one) => one.costUsd)).toEqual(shares.slice(0, -1));
    }),
  );
});

test("written and new shares add up to the bill, whichever months are written", () => {
  const month = (n: number): string => new Date(Date.UTC(2026, n)).toISOString().slice(0, 10);
  const days = fc.double({ min: 0, max: 40, noNaN: true });
  const written = fc.uniqueArray(fc.record({ n: fc.nat(20), days }), { selector: ({ n }) => n });
  fc.assert(
    fc.property(fc.array(days, { minLength: 1, maxLength: 12 }), written, (pieces, early) => {
      const portions = [{ usage: NO_USAGE, gpu_tokens: [] }];
      const priceOf = (all: number): Decimal =>
        new Decimal(priceJob("deploy", withDays(portions, all), DEFAULT_RATE_CARD).totalCostUsd);
      let total = 0;
      const lived = pieces.map((piece, n) => {
        total += piece;
        return { month: month(n), days: total };
      });
      // `lines`: the billing lines that exist before the split. `closed`: the number of days that
      // all these lines together bill. It must not exceed `total`, because `splitByMonth` requires
      // that the lines add up to at most the bill.
      let closed = 0;
      const lines = early.map(({ n, days: more }) => {
        const before = priceOf(closed);
        closed = Math.min(total, closed + more);
        return { month: month(n), costUsd: priceOf(closed).minus(before).toFixed() };
      });
      const shares = splitByMonth("deploy", portions, DEFAULT_RATE_CARD, lived, lines);
      const sum = Decimal.sum(0, ...[...lines, ...shares].map(({ costUsd }) => costUsd));
      expect(sum.toFixed()).toBe(priceOf(total).toFixed());
      const months = [...lines, ...shares].map((one) => one.month);
      expect(new Set(months).size).toBe(months.length);
      for (const { costUsd } of shares) expect(new Decimal(costUsd).isNegative()).toBe(false);
    }),
  );
});

const accruing = (days: number[], written: MonthShare[] = []): Accruing => ({
  portions: [{ usage: NO_USAGE, gpu_tokens: [] }],
  card: DEFAULT_RATE_CARD,
  lived: days.map((each, at) => ({ month: `2026-0${at + 1}-01`, days: each })),
  written,
});

test("a live deployment accrues in each of its months, except in written ones", () => {
  const live = accruing([15, 43, 50], [{ month: "2026-01-01", costUsd: "1" }]);
  const months = ["2025-12-01", "2026-01-01", "2026-02-01", "2026-03-01"];
  expect(months.map((month) => accruedIn(live, month).toNumber())).toEqual([
    0, 0, 1.866667, 0.466666,
  ]);
});

test("it adds the remaining days to the current month, and all days to a future month", () => {
  const month = (of: number, now: string) => ({
    start: new Date(Date.UTC(2026, of - 1)),
    end: new Date(Date.UTC(2026, of)),
    now: new Date(now),
  });
  const adds = (of: number): number =>
    stillToAccrue(accruing([15]), month(of, "2026-01-16T00:00:00Z")).toNumber();
  expect([1, 2, 3].map(adds)).toEqual([1.066667, 1.866666, 2.066667]);
  expect(stillToAccrue(accruing([15]), month(1, "2026-02-01T00:00:00Z")).toNumber()).toBe(0);
});

test("job costs are projected at the rate of the days so far, with the first day counted whole", () => {
  const [start, end] = [new Date("2026-01-01T00:00:00Z"), new Date("2026-02-01T00:00:00Z")];
  const at = (iso: string): number =>
    projectJobs(new Decimal(10), start, new Date(iso), end).toNumber();
  expect(at("2026-01-11T00:00:00Z")).toBe(31);
  expect(at("2026-01-01T01:00:00Z")).toBe(310);
  expect(at("2026-02-01T00:00:00Z")).toBe(10);
  expect(at("2026-05-01T00:00:00Z")).toBe(10);
});
