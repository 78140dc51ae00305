import { z } from "zod";
import { NotFound } from "../../core/errors";
import { type Route, route } from "../../platform/http/route";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../../services/accounts/audit";
import { setPaymentCustomer } from "../../services/accounts/users";
import { retryPostponedLines } from "../../services/billing/billing-exports";
import type { Context } from "../../services/context";
import { presentUser, userSchema } from "../accounts/present-user";

const WAKE_BATCH = 5_000;

/** The allowed customer ids, as in the users table's constraint. */
const CUSTOMER_ID = /^[A-Za-z0-9_-]{1,255}$/;

const customerBody = z
  .strictObject({
    payment_customer_id: z
      .string()
      .regex(CUSTOMER_ID, "letters, digits, _ and -; at most 255")
      .nullable(),
  })
  .meta({ id: "PaymentCustomer" });

export function paymentCustomerRoute(ctx: Context): Route {
  return route({
    method: "PUT",
    paths: ["/api/admin/users/:user_id/payment-customer"],
    scope: "admin",
    operationId: "setPaymentCustomer",
    tag: "Users",
    summary: "Set a user's customer id at the payment processor",
    description:
      "From now on, usage is reported for this customer, including usage that waited for an id. With null, " +
      "usage waits until an id is set.",
    body: {
      schema: customerBody,
      examples: {
        customer: { payment_customer_id: "cus_NciAYcXfLnqBoz" },
        none: { payment_customer_id: null },
      },
    },
    responses: { 200: { description: "the user", schema: userSchema } },
    errorCodes: { 404: ["user_not_found"] },
    async handle({ params, body, principal }) {
      const { user_id: userId = "" } = params;
      const { payment_customer_id: after } = body;
      const changed = await transaction(ctx.pool, async (db) => {
        const found = await setPaymentCustomer(db, userId, after);
        if (!found) throw new NotFound("user", userId, "user_id");
        const { before, ...user } = found;
        if (before !== after) {
          const action = "payment_customer_set";
          await recordAudit(db, { userId, action, subject: userId, principal, before, after });
        }
        return user;
      });
      // Let the exporter retry the user's failed billing lines at once, for example those that
      // failed because there was no customer id. There may be many, so this is not part of the
      // transaction. If this process crashes here, the exporter retries the remaining lines within
      // a day.
      while ((await retryPostponedLines(ctx.pool, userId, WAKE_BATCH)) === WAKE_BATCH);
      return presentUser(changed);
    },
  });
}
