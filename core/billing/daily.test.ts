import { Decimal } from "decimal.js";
import fc from "fast-check";
import { withDays } from "./accrual";
import { splitByDay } from "./daily";
import { priceJob } from "./pricing";
import { DEFAULT_RATE_CARD } from "./rate-card";
import { NO_USAGE } from "./usage";

const PORTIONS = [{ usage: NO_USAGE, gpu_tokens: [] }];
const priceOf = (days: number): Decimal =>
  new Decimal(priceJob("deploy", withDays(PORTIONS, days), DEFAULT_RATE_CARD).totalCostUsd);

const steps = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 31 });

test("a month's days add up to what the month bears", () => {
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
        const month = {
          month: "2026-01-01",
          portions: PORTIONS,
          card: DEFAULT_RATE_CARD,
          daysBefore: before,
          lived,
        };
        const shares = splitByDay({ ...month, written: null });
        const sum = Decimal.sum(0, ...shares.map(({ usd }) => usd));
        expect(sum.toFixed()).toBe(
          priceOf(days)
            .minus(before === null ? 0 : priceOf(before))
            .toFixed(),
        );
        expect(shares.map(({ day }) => day)).toEqual(lived.map(({ day }) => day));
        for (const { usd } of shares) expect(usd.isNegative()).toBe(false);
      },
    ),
  );
});

test("the last day has what is written and not in the others", () => {
  const lived = [1, 2, 3].map((days) => ({ day: `day ${days}`, days }));
  const shares = splitByDay({
    month: "2026-01-01",
    portions: PORTIONS,
    card: DEFAULT_RATE_CARD,
    daysBefore: null,
    written: "0.200002",
    lived,
  });
  expect(shares.map(({ usd }) => usd.toFixed())).toEqual(["0.066667", "0.066666", "0.066669"]);
});
