import { z } from "zod";
import { defaultWarning } from "../../core/billing/budget";
import { InvalidRequest } from "../../core/errors";
import { type Route, route } from "../../platform/http/route";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../../services/accounts/audit";
import { lockBudget, setBudget } from "../../services/billing/budgets";
import { findRateCard } from "../../services/billing/rate-cards";
import { findBudgetState } from "../../services/billing/require-budget";
import type { Context } from "../../services/context";
import { requireTenant, tenantQuery } from "../accounts/tenant-filter";
import { budgetSchema, presentBudget } from "./present-budget";

const usd = z.number().min(0).max(1e9);

const budgetBody = z.strictObject({
  cap_usd: usd
    .nullable()
    .describe(
      "cap in USD per month (UTC); submissions are refused with 402 if it is reached or would be " +
        "exceeded; null: no cap",
    ),
  warning_usd: usd
    .nullable()
    .optional()
    .describe("USD from which submissions get a warning; by default 80 % of the cap; null: never"),
});

const TENANT = z.strictObject(tenantQuery);

export function billingBudgetRoutes(ctx: Context): Route[] {
  const show = async (db: Queryable, userId: string) => {
    const verdict = await findBudgetState(ctx, db, userId, await findRateCard(db, userId));
    return { user_id: userId, budget: verdict ? presentBudget(verdict) : null };
  };
  const responses = {
    200: {
      description: "the budget, and the amounts that count against it",
      schema: z.object({ user_id: z.string(), budget: budgetSchema.nullable() }),
    },
  };
  return [
    route({
      method: "GET",
      paths: ["/api/billing/budget"],
      scope: "user",
      operationId: "getBudget",
      tag: "Billing",
      summary: "Read the monthly budget",
      query: TENANT,
      responses,
      errorCodes: { 404: ["user_not_found"] },
      handle: async ({ principal, query }) =>
        await show(ctx.pool, await requireTenant(ctx, principal, query.user_id)),
    }),
    route<z.output<typeof TENANT>, z.output<typeof budgetBody>>({
      method: "PUT",
      paths: ["/api/billing/budget"],
      scope: "user",
      operationId: "setBudget",
      tag: "Billing",
      summary: "Set the monthly budget",
      description:
        "Running work counts with its expected cost, and a budget never stops it. The audit log records each " +
        "change.",
      query: TENANT,
      body: {
        schema: budgetBody,
        examples: { capped: { cap_usd: 500, warning_usd: 400 }, none: { cap_usd: null } },
      },
      responses,
      errorCodes: { 404: ["user_not_found"] },
      async handle({ principal, query, body }) {
        const userId = await requireTenant(ctx, principal, query.user_id);
        const warning = warningOf(body);
        await transaction(ctx.pool, async (db) => {
          const before = (await lockBudget(db, userId)) ?? null;
          const after = await setBudget(db, userId, body.cap_usd, warning);
          await recordAudit(db, {
            userId,
            action: "budget_set",
            subject: userId,
            principal,
            before: before && boundsOf(before),
            after: boundsOf(after),
          });
        });
        return await show(ctx.pool, userId);
      },
    }),
  ];
}

type Bounds = { cap_usd: number | null; warning_usd: number | null };

const boundsOf = ({ cap_usd, warning_usd }: Bounds): Bounds => ({ cap_usd, warning_usd });

function warningOf({ cap_usd: cap, warning_usd: warning }: z.output<typeof budgetBody>) {
  if (warning === undefined) return defaultWarning(cap);
  if (warning !== null && cap !== null && warning > cap) {
    throw new InvalidRequest('"warning_usd" must not be above "cap_usd"', "warning_usd");
  }
  return warning;
}
