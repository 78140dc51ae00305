import { z } from "zod";
import { pricesSchema } from "../../core/billing/rate-card";
import { Conflict, NotFound } from "../../core/errors";
import { timestamp } from "../../core/timestamp";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { idempotencyHeader } from "../../platform/http/openapi";
import { type Route, route } from "../../platform/http/route";
import { readClock } from "../../platform/postgres/clock";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../../services/accounts/audit";
import { createOnce } from "../../services/accounts/idempotency-keys";
import { isUser } from "../../services/accounts/users";
import {
  assignRateCard,
  findCardVersion,
  findFirstDate,
  findRateCard,
  insertCardVersion,
  listRateCards,
  type RateCardRow,
} from "../../services/billing/rate-cards";
import type { Context } from "../../services/context";

const cardName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "lower-case letters, digits, _ and -; at most 64");
const effectiveFrom = z.iso.datetime({ offset: true }).optional().describe("by default now");

const newCardBody = z.strictObject({
  name: cardName,
  effective_from: effectiveFrom,
  prices: pricesSchema,
});

const assignBody = z.strictObject({ rate_card: cardName, effective_from: effectiveFrom });

const cardSchema = z
  .object({
    name: z.string(),
    version: z.int(),
    effective_from: timestamp,
    prices: pricesSchema,
    created_by: z.string(),
    created_at: timestamp,
  })
  .meta({ id: "RateCard" });

const METERED_EXAMPLE = {
  basis: "metered",
  gpuHour: { default: "2.50", h100: "3.20" },
  inputPer1mTokens: "10.00",
  outputPer1mTokens: "30.00",
  storagePerGbMonth: "0.02",
  deployPerMonth: "0",
};

export function rateCardRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/admin/rate-cards"],
      scope: "admin",
      operationId: "listRateCards",
      tag: "Rate cards",
      summary: "List all versions of all rate cards, newest first",
      query: z.strictObject(pageQuery),
      responses: {
        200: { description: "a page of cards", schema: listOf("rate_cards", cardSchema) },
      },
      async handle({ query }) {
        const page = pageOf(query);
        const rows = await listRateCards(ctx.pool, page);
        const idOf = (row: RateCardRow): string => `${row.name}:${row.version}`;
        return presentPage("rate_cards", rows, page, idOf, presentCard);
      },
    }),
    route<unknown, z.output<typeof newCardBody>>({
      method: "POST",
      paths: ["/api/admin/rate-cards"],
      scope: "admin",
      operationId: "createRateCard",
      tag: "Rate cards",
      summary: "Add a rate card or its next version",
      description:
        "Jobs keep the version that was in force when they were submitted; versions never change. From its " +
        "date on, a version replaces all earlier versions, including those announced for a later date.",
      headers: idempotencyHeader,
      body: {
        schema: newCardBody,
        examples: { metered: { name: "research", prices: METERED_EXAMPLE } },
      },
      responses: { 201: { description: "the version", schema: cardSchema } },
      errorCodes: { 409: ["effective_too_early", "rate_card_changed"] },
      async handle(call) {
        const { name, prices, effective_from: from = null } = call.body;
        const { answer } = await createOnce(ctx, call, {
          content: call.body,
          async create(db) {
            await requireNotPast(db, from);
            const before = await findCardVersion(db, name);
            const { keyName } = call.principal;
            const row = await insertCardVersion(db, name, prices, from, keyName);
            if (!row) {
              const message = `another version of "${name}" was added at the same time`;
              throw new Conflict("rate_card_changed", message, "name");
            }
            await recordAudit(db, {
              userId: null,
              action: "rate_card_added",
              subject: `${name}:${row.version}`,
              principal: call.principal,
              before: before ? presentCard(before) : null,
              after: presentCard(row),
            });
            return presentCard(row);
          },
        });
        return answer;
      },
    }),
    route<unknown, z.output<typeof assignBody>>({
      method: "PUT",
      paths: ["/api/admin/users/:user_id/rate-card"],
      scope: "admin",
      operationId: "assignRateCard",
      tag: "Rate cards",
      summary: "Assign a rate card to a user",
      description:
        "Applies to jobs submitted from `effective_from` on. Earlier jobs keep their prices.",
      body: { schema: assignBody, examples: { metered: { rate_card: "metered" } } },
      responses: {
        200: {
          description: "the assignment",
          schema: z.object({
            user_id: z.string(),
            rate_card: z.string(),
            effective_from: timestamp,
          }),
        },
      },
      errorCodes: { 404: ["user_not_found", "rate_card_not_found"], 409: ["effective_too_early"] },
      async handle({ params: { user_id: userId = "" }, body, principal }) {
        const { rate_card: name, effective_from: from = null } = body;
        const assigned = await transaction(ctx.pool, async (db) => {
          if (!(await isUser(db, userId))) throw new NotFound("user", userId, "user_id");
          await requireNotPast(db, from);
          const first = await findFirstDate(db, name);
          if (!first) throw new NotFound("rate_card", name, "rate_card");
          const before = await findRateCard(db, userId);
          const row = await assignRateCard(db, userId, name, from, principal.keyName);
          if (first > row.effective_from) {
            throw tooEarly(`"${name}" takes effect on ${first.toISOString()}`);
          }
          const after = { rate_card: name, effective_from: row.effective_from.toISOString() };
          await recordAudit(db, {
            userId,
            action: "rate_card_assigned",
            subject: userId,
            principal,
            before: { rate_card: before.name },
            after,
          });
          return after;
        });
        return { user_id: userId, ...assigned };
      },
    }),
  ];
}

/** Refuses a date in the past, because jobs that are already submitted keep their prices. */
async function requireNotPast(db: Queryable, from: string | null): Promise<void> {
  if (from !== null && new Date(from) < new Date(await readClock(db))) {
    throw tooEarly("it is in the past");
  }
}

const tooEarly = (why: string): Conflict =>
  new Conflict("effective_too_early", `"effective_from" is too early: ${why}`, "effective_from");

const presentCard = (row: RateCardRow): z.infer<typeof cardSchema> => ({
  name: row.name,
  version: row.version,
  effective_from: row.effective_from.toISOString(),
  prices: row.prices,
  created_by: row.created_by,
  created_at: row.created_at.toISOString(),
});
