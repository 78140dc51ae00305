import fc from "fast-check";
import { JOB_TYPES } from "../jobs/job-types";
import { OUTCOMES } from "../jobs/states";
import { type AttemptFacts, meterAttempt } from "./metering";
import { priceJob } from "./price-job";
import { DEFAULT_RATE_CARD, METERED_RATE_CARD, type RateCard } from "./rate-card";
import { compareRecord } from "./recompute";
import { metricsOf, portionsOf } from "./record";
import { NO_USAGE, readUsage, readUsageLeniently } from "./usage";

const NO_BOUNDS = { tokens: 1e15, rows: 1e15, samples: 1e15 };

const facts = (measured: number, reported: number | null): AttemptFacts => ({
  attempt: 1,
  outcome: "completed",
  worker_id: "w",
  gpu_tokens: ["h100"],
  gpu_hours_measured: measured,
  seconds: 1,
  usage: { ...NO_USAGE, gpu_hours: reported },
});

test.each([
  [2, 1.5, 1.5, []],
  [2, 2, 2, []],
  [2, 20, 2, ["gpu_hours_over_measured"]],
  [2, 0, 0, []],
  [2, null, 2, ["gpu_hours_not_reported"]],
  [0, 1, 0, ["gpu_hours_over_measured"]],
  [0, null, 0, []],
])(
  "%d hours measured, %s reported: bills %d with flags %j",
  (measured, reported, billed, flags) => {
    const metered = meterAttempt(facts(measured, reported), true, NO_BOUNDS);
    expect([metered.usage.gpu_hours, metered.flags]).toEqual([billed, flags]);
    expect([metered.gpu_hours_measured, metered.gpu_hours_reported]).toEqual([measured, reported]);
  },
);

test.each(["1", Number.NaN, Number.POSITIVE_INFINITY, -1, -0.000001, 1e308, true, [], {}])(
  "a usage number that is %p is rejected by name, in metrics and in result",
  (value) => {
    for (const field of [...Object.keys(NO_USAGE), "tokens_used"]) {
      expect(() => readUsage({ [field]: value }, {})).toThrow(
        expect.objectContaining({ code: "invalid_request", param: `metrics.${field}` }),
      );
      expect(() => readUsage({}, { [field]: value })).toThrow(
        expect.objectContaining({ param: `result.${field}` }),
      );
      // A failed attempt must be able to end, so its invalid numbers are ignored.
      expect(readUsageLeniently({ [field]: value })).toEqual(readUsage({}, {}));
    }
  },
);

test.each([
  [{}, {}, [0, 0]],
  [{ tokens_generated: 70 }, {}, [0, 70]],
  [{ tokens_generated: 70, tokens_used: 100 }, {}, [30, 70]],
  [{ tokens_used: 100 }, {}, [100, 0]],
  [{ tokens_used: 10, tokens_generated: 70 }, {}, [0, 70]],
  [{ input_tokens: 5, output_tokens: 6, tokens_used: 100, tokens_generated: 70 }, {}, [5, 6]],
  [{}, { input_tokens: 5, output_tokens: 6 }, [5, 6]],
  [{ output_tokens: null }, { output_tokens: 6 }, [0, 6]],
])("metrics %j and result %j give input and output tokens %j", (metrics, result, tokens) => {
  const usage = readUsage(metrics, result);
  expect([usage.input_tokens, usage.output_tokens]).toEqual(tokens);
});

const amount = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e8, noNaN: true }), fc.nat());
const attempts = fc.array(
  fc.record({
    outcome: fc.constantFrom(...OUTCOMES),
    billed: fc.boolean(),
    gpu: fc.constantFrom<string[]>(["a100"], ["h100", "80gb"], []),
    measured: amount,
    reported: fc.option(amount),
    tokens: amount,
    rows: amount,
  }),
  { minLength: 1, maxLength: 3 },
);

test("recomputing a record finds no difference, and detects a changed number", () => {
  const cards = fc.constantFrom<RateCard>(DEFAULT_RATE_CARD, METERED_RATE_CARD);
  fc.assert(
    fc.property(
      attempts,
      fc.constantFrom(...JOB_TYPES),
      cards,
      amount,
      (given, type, card, days) => {
        const metered = given.map((one, at) =>
          meterAttempt(
            {
              ...{ attempt: at + 1, outcome: one.outcome, worker_id: "w", gpu_tokens: one.gpu },
              gpu_hours_measured: one.measured,
              seconds: 1,
              usage: {
                gpu_hours: one.reported,
                tokens_generated: one.tokens,
                output_tokens: one.tokens,
                rows_processed: one.rows,
              },
            },
            one.billed,
            NO_BOUNDS,
          ),
        );
        const metrics = {
          ...metricsOf(metered, 5),
          deployment_lifetime_days: type === "deploy" ? days : 0,
        };
        const gpu = metered.at(-1)?.gpu_tokens ?? [];
        const bill = priceJob(
          type,
          portionsOf({ metrics, gpu_tokens: gpu, attempts: metered }),
          card,
        );
        const record = {
          ...{ job_id: "j", job_type: type, metrics, gpu_tokens: gpu, attempts: metered },
          ...{ rate_card: card, formula: bill.formula, unit_costs: bill.unitCosts },
          cost_breakdown: bill.costBreakdown,
          total_cost_usd: Number(bill.totalCostUsd),
        };
        // Simulates storing the record in Postgres and reading it back.
        const stored = JSON.parse(JSON.stringify(record)) as typeof record;
        expect(compareRecord(stored)).toEqual([]);
        const wrong = { ...stored, total_cost_usd: stored.total_cost_usd + 0.01 };
        expect(compareRecord(wrong)).toHaveLength(1);
        for (const { usage, gpu_hours_measured: measured } of metered) {
          expect(usage.gpu_hours).toBeLessThanOrEqual(measured);
        }
      },
    ),
  );
});
