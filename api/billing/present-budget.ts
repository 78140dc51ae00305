import { z } from "zod";
import type { BudgetVerdict } from "../../services/billing/require-budget";
import { nullableNumber } from "../fields";

export const budgetSchema = z
  .object({
    cap_usd: nullableNumber.describe("from this amount, submissions get 402; null: no cap"),
    warning_usd: nullableNumber.describe(
      "from this amount, submissions get a warning; null: never",
    ),
    state: z.enum(["ok", "warning", "exhausted"]),
    spent_usd: z
      .number()
      .describe("cost this month: billed jobs, live deployments and storage so far"),
    committed_usd: z.number().describe("expected further cost of running work this month"),
    remaining_usd: nullableNumber,
  })
  .meta({ id: "Budget" });

export function presentBudget({
  budget,
  spending,
  state,
}: BudgetVerdict): z.infer<typeof budgetSchema> {
  const { spent, committed } = spending;
  const left = budget.cap_usd === null ? null : spent.plus(committed).minus(budget.cap_usd).neg();
  return {
    cap_usd: budget.cap_usd,
    warning_usd: budget.warning_usd,
    state,
    spent_usd: spent.toNumber(),
    committed_usd: committed.toDecimalPlaces(6).toNumber(),
    remaining_usd: left === null ? null : Math.max(0, left.toDecimalPlaces(6).toNumber()),
  };
}
