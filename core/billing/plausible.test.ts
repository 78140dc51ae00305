import fc from "fast-check";
import { JOB_TYPES } from "../jobs/job-types";
import { boundsOf, type Evidence, withinBounds } from "./plausible";
import { MAX_BILL_USD, priceJob } from "./price-job";
import { DEFAULT_RATE_CARD } from "./rate-card";
import { NO_USAGE } from "./usage";

const short = (type: Evidence["type"], more: Partial<Evidence> = {}): Evidence => ({
  type,
  payload: {},
  rows: null,
  seconds: 1,
  ...more,
});

test.each<[string, Evidence, Partial<ReturnType<typeof boundsOf>>]>([
  ["ten rows", short("generate", { payload: { size: 10 } }), { tokens: 100_000_000 }],
  ["a dataset of 500 rows", short("distill", { rows: 500 }), { tokens: 500_000_000 }],
  ["a dataset of one row", short("distill", { rows: 1 }), { tokens: 100_000_000 }],
  ["an external dataset", short("distill"), { tokens: 1_000_000_000 }],
  ["a dataset of 500 rows, audited", short("audit", { rows: 500 }), { rows: 100_000 }],
  ["a dataset of a million rows, audited", short("audit", { rows: 1e6 }), { rows: 1_000_000 }],
  ["an hour of an audit", short("audit", { seconds: 3_600 }), { rows: 3_600_000_000 }],
  ["an hour of evaluation", short("evaluate", { seconds: 3_600 }), { samples: 36_000_000 }],
])("%s", (_name, evidence, bounds) => {
  expect(boundsOf(evidence)).toMatchObject(bounds);
});

test("usage within its bounds is unchanged; usage beyond is cut and reported", () => {
  const bounds = { tokens: 100, rows: 10, samples: 1 };
  const usage = { ...NO_USAGE, gpu_hours: 1e6, rows_processed: 10 };
  expect(withinBounds(usage, bounds)).toEqual({ usage, cut: {} });
  expect(
    withinBounds({ tokens_generated: 101, output_tokens: 99, gpu_hours: null }, bounds),
  ).toEqual({
    usage: { tokens_generated: 100, output_tokens: 99, gpu_hours: null },
    cut: { tokens_generated: 101 },
  });
});

test("false reports about a one-minute job cost at most 12,000 USD", () => {
  const amount = fc.double({ min: 0, max: 1e15, noNaN: true });
  fc.assert(
    fc.property(
      fc.constantFrom(...JOB_TYPES),
      amount,
      amount,
      amount,
      (type, tokens, rows, samples) => {
        const reported = {
          tokens_generated: tokens,
          rows_processed: rows,
          samples_evaluated: samples,
        };
        const { usage } = withinBounds(
          { ...NO_USAGE, ...reported },
          boundsOf(short(type, { seconds: 60, payload: { size: 10 } })),
        );
        const portions = [{ usage: { ...NO_USAGE, ...usage, gpu_hours: 0 }, gpu_tokens: [] }];
        const usd = Number(priceJob(type, portions, DEFAULT_RATE_CARD).totalCostUsd);
        expect(usd).toBeLessThanOrEqual(Math.min(12_000, MAX_BILL_USD));
      },
    ),
  );
});
