import type { Decimal } from "decimal.js";
import {
  type Budget,
  type BudgetState,
  explainBudget,
  judgeBudget,
  type Spending,
} from "../../core/billing/budget";
import { monthBounds } from "../../core/billing/month";
import type { RateCard } from "../../core/billing/rate-card";
import { ForgeError } from "../../core/errors";
import { readClock } from "../../platform/postgres/clock";
import type { Queryable } from "../../platform/postgres/pool";
import type { Context } from "../context";
import type { JobWarning } from "../jobs/jobs";
import { findBudget, lockBudget, sumExpected } from "./budgets";
import { readMonth } from "./read-month";

/** The amounts that use up a tenant's budget in this month. */
async function readSpending(
  { config }: Context,
  db: Queryable,
  userId: string,
  card: RateCard,
): Promise<Spending> {
  // Read unfinished jobs first: a job that is billed between the two reads is then counted twice,
  // not missed.
  const expected = await sumExpected(db, userId, config.billing.outcomes);
  const month = await readMonth(db, userId, monthBounds(undefined, await readClock(db)), card);
  return {
    spent: month.totalUsd.plus(month.accruingLaterUsd),
    committed: month.toAccrueUsd.plus(expected),
  };
}

export interface BudgetVerdict {
  state: BudgetState;
  budget: Budget;
  spending: Spending;
}

/** The state of a tenant's budget; undefined if the tenant has none. */
export async function findBudgetState(
  ctx: Context,
  db: Queryable,
  userId: string,
  card: RateCard,
): Promise<BudgetVerdict | undefined> {
  const budget = await findBudget(db, userId);
  if (!budget) return undefined;
  const spending = await readSpending(ctx, db, userId, card);
  return { state: judgeBudget(budget, spending), budget, spending };
}

/**
 * Checks that the budget allows an expected cost. Call in the transaction that inserts the job or
 * pipeline: this locks the budget's row, so that concurrent submissions are checked one at a time.
 *
 * @returns warnings for the response.
 * @throws ForgeError 402 `budget_exhausted`.
 */
export async function requireBudget(
  ctx: Context,
  db: Queryable,
  userId: string,
  card: RateCard,
  expectedUsd: Decimal.Value,
): Promise<JobWarning[]> {
  const budget = await lockBudget(db, userId);
  if (!budget) return [];
  const spending = await readSpending(ctx, db, userId, card);
  const state = judgeBudget(budget, spending, expectedUsd);
  const numbers = explainBudget(budget, spending, expectedUsd);
  switch (state) {
    case "ok":
      return [];
    case "warning":
      return [{ code: "budget_warning", param: "budget", message: `this month ${numbers}` }];
    case "exhausted": {
      const message = `this month's budget does not allow it: ${numbers}`;
      throw new ForgeError(402, "budget_exhausted", message, undefined, {
        cap_usd: budget.cap_usd,
        spent_usd: spending.spent.toNumber(),
        committed_usd: spending.committed.toNumber(),
        expected_usd: Number(expectedUsd),
      });
    }
  }
}
