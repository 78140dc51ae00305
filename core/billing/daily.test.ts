import { Decimal } from "decimal.js";
import fc from "fast-check";
import { withDays } from "./accrual";
import { splitByDay } from "./daily";
import { priceJob } from "./price-job";
import { DEFAULT_RATE_CARD } from "./rate-card";
import { NO_USAGE } from "./usage";

const PORTIONS = [{ usage: NO_USAGE, gpu_tokens: [] }];
const priceOf = (days: number): Decimal =>
  new Decimal(priceJob("deploy", withDays(PORTIONS, days), DEFAULT_RATE_CARD).totalCostUsd);

const steps = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 31 });

test("the days of a month add up to the month's share", () => {
  fc.assert(
    fc.property(
      fc.option(fc.double({ min: 0, max: 400, noNaN: true })),
      steps,
      (before, lengths) => {
        let days = before ?? 0;
        const lived = lengths.map((length, n) => {
          days += length;
          return { day: `day ${n}`, days };
        });
        const share = priceOf(days).minus(before === null ? 0 : priceOf(before));
        const month = {
          month: "2026-01-01",
          portions: PORTIONS,
          card: DEFAULT_RATE_CARD,
          daysBefore: before,
          lived,
        };
        const shares = splitByDay({ ...month, share });
        const sum = Decimal.sum(0, ...shares.map(({ usd }) => usd));
        expect(sum.toFixed()).toBe(share.toFixed());
        expect(shares.map(({ day }) => day)).toEqual(lived.map(({ day }) => day));
        for (const { usd } of shares) expect(usd.isNegative()).toBe(false);
      },
    ),
  );
});

test("the last day takes the rest of the month's share", () => {
  const lived = [1, 2, 3].map((days) => ({ day: `day ${days}`, days }));
  const shares = splitByDay({
    month: "2026-01-01",
    portions: PORTIONS,
    card: DEFAULT_RATE_CARD,
    daysBefore: null,
    share: new Decimal("0.200002"),
    lived,
  });
  expect(shares.map(({ usd }) => usd.toFixed())).toEqual(["0.066667", "0.066666", "0.066669"]);
});

test("the month's share is distributed even if it differs from the sum of its days", () => {
  const daysOf = (usd: number, lived: { day: string; days: number }[]) =>
    splitByDay({
      month: "2026-01-01",
      portions: PORTIONS,
      card: DEFAULT_RATE_CARD,
      daysBefore: 10,
      share: new Decimal(usd),
      lived,
    }).map(({ day, usd }) => [day, usd.toNumber()]);
  const lived = [11, 12, 13].map((days, n) => ({ day: `2026-01-0${n + 1}`, days }));
  const days = lived.map(({ day }) => day);
  expect(daysOf(0, lived)).toEqual(days.map((day) => [day, 0]));
  expect(daysOf(0.1, lived).map(([, usd]) => usd)).toEqual([0.066666, 0.033334, 0]);
  expect(daysOf(0.5, [])).toEqual([["2026-01-01", 0.5]]);
  expect(daysOf(0, [])).toEqual([]);
});
