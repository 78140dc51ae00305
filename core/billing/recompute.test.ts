import fc from "fast-check";
import { JOB_TYPES } from "../jobs/job-types";
import { meterAttempt } from "./metering";
import { boundsOf } from "./plausible";
import { priceJob } from "./price-job";
import { DEFAULT_RATE_CARD, METERED_RATE_CARD } from "./rate-card";
import { compareRecord } from "./recompute";
import { metricsOf, portionsOf } from "./record";
import { readUsage } from "./usage";

const count = (most: number) =>
  fc.oneof(fc.double({ min: 0, max: most, noNaN: true }), fc.nat({ max: 1e8 }));
const usage = fc.record({
  gpu_hours: count(1e8),
  tokens_generated: count(1e15),
  input_tokens: count(1e15),
  output_tokens: count(1e15),
  rows_processed: count(1e12),
  samples_evaluated: count(1e12),
});

test("recomputing a record finds no difference for any reported usage", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...JOB_TYPES),
      fc.constantFrom(DEFAULT_RATE_CARD, METERED_RATE_CARD),
      fc.array(usage, { minLength: 1, maxLength: 3 }),
      count(1e8),
      (type, card, reports, measured) => {
        const attempts = reports.map((reported, at) =>
          meterAttempt(
            {
              attempt: at + 1,
              outcome: "completed",
              worker_id: "w",
              gpu_tokens: [],
              gpu_hours_measured: measured,
              seconds: 1,
              usage: readUsage(reported, {}),
            },
            true,
            boundsOf({ type, payload: { size: 10 }, rows: null, seconds: 1 }),
          ),
        );
        const metrics = metricsOf(attempts, 0);
        const bill = priceJob(type, portionsOf({ metrics, gpu_tokens: [], attempts }), card);
        // `total_cost_usd` is a float, because NUMERIC columns are read as floats.
        const record = {
          job_id: "j",
          job_type: type,
          metrics,
          unit_costs: bill.unitCosts,
          cost_breakdown: bill.costBreakdown,
          total_cost_usd: Number(bill.totalCostUsd),
          rate_card: card,
          gpu_tokens: [],
          attempts,
          formula: bill.formula,
        };
        expect(compareRecord(structuredClone(record))).toEqual([]);
      },
    ),
    { numRuns: 500 },
  );
});
