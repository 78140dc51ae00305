import { z } from "zod";
import type { BudgetVerdict } from "../../services/billing/require-budget";
import { nullableNumber } from "../fields";

export const budgetSchema = z
  .object({
    cap_usd: nullableNumber.describe("at which submissions are refused with 402; null: none"),
    warning_usd: nullableNumber.describe("from which on submissions are answered with a warning"),
    state: z.enum(["ok", "warning", "exhausted"]),
    spent_usd: z.number().describe("this month: billed, accrued and stored so far"),
    committed_usd: z.number().describe("what is under way is expected to add this month"),
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
