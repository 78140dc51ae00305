import { z } from "zod";
import { ARTIFACT_FORMS, ARTIFACT_KINDS } from "../../core/artifacts/artifacts";
import { monthBounds } from "../../core/billing/month";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import { type Route, route } from "../../platform/http/route";
import { readClock } from "../../platform/postgres/clock";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../../services/accounts/audit";
import {
  listRetentionRules,
  measureStorage,
  type RetentionRule,
  replaceRetentionRules,
} from "../../services/billing/storage";
import type { Context } from "../../services/context";
import { tenantOf, tenantQuery } from "../accounts/tenant-filter";
import { periodQuery } from "./period";

const usageSchema = z
  .object({
    user_id: z.string(),
    period: z.string(),
    artifacts: z.int(),
    total_bytes: z.int().describe("bytes stored now"),
    gb_months: z
      .number()
      .describe("storage used in the period so far; 1 is 10^9 bytes stored for the whole month"),
    by_kind: z.record(
      z.string(),
      z.object({ artifacts: z.int(), bytes: z.int(), gb_months: z.number() }),
    ),
  })
  .meta({ id: "StorageUsage" });

/** Deployments have no retention rule: they are stopped instead. */
const KINDS = ARTIFACT_KINDS.filter((kind) => kind !== ARTIFACT_FORMS[DEPLOYMENT_TYPE].kind);

const rule = {
  kind: z.enum(KINDS),
  keep_days: z.int().min(1).max(36_500).describe("days from the artifact's creation"),
};

const rulesSchema = z
  .object({ rules: z.array(z.object(rule)).max(KINDS.length) })
  .meta({ id: "RetentionRules" });

const newRulesSchema = z.strictObject({
  rules: z
    .array(z.strictObject(rule))
    .max(KINDS.length)
    .refine(
      (rules) => new Set(rules.map(({ kind }) => kind)).size === rules.length,
      "must have at most one rule for each kind",
    ),
});

const TENANT = z.strictObject(tenantQuery);

export function storageRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/storage"],
      scope: "user",
      operationId: "getStorage",
      tag: "Artifacts",
      summary: "Read your storage usage",
      query: z.strictObject({ ...periodQuery, ...tenantQuery }),
      responses: { 200: { description: "the usage, by kind and in total", schema: usageSchema } },
      async handle({ principal, query }) {
        const userId = tenantOf(principal, query.user_id);
        const { period, start, end } = monthBounds(query.period, await readClock(ctx.pool));
        const bounds = [start.toISOString(), end.toISOString()] as const;
        const kinds = await measureStorage(ctx.pool, userId, ...bounds);
        const sum = (pick: (kind: (typeof kinds)[number]) => number): number =>
          kinds.reduce((total, kind) => total + pick(kind), 0);
        return {
          user_id: userId,
          period,
          artifacts: sum(({ artifacts }) => artifacts),
          total_bytes: sum(({ bytes }) => bytes),
          gb_months: sum(({ gb_months }) => gb_months),
          by_kind: Object.fromEntries(kinds.map(({ kind, ...used }) => [kind, used])),
        };
      },
    }),
    route({
      method: "GET",
      paths: ["/api/retention"],
      scope: "user",
      operationId: "getRetention",
      tag: "Artifacts",
      summary: "Read the retention rules",
      query: TENANT,
      responses: { 200: { description: "the rules", schema: rulesSchema } },
      handle: async ({ principal, query }) => ({
        rules: await listRetentionRules(ctx.pool, tenantOf(principal, query.user_id)),
      }),
    }),
    route<z.output<typeof TENANT>, { rules: RetentionRule[] }>({
      method: "PUT",
      paths: ["/api/retention"],
      scope: "user",
      operationId: "setRetention",
      tag: "Artifacts",
      summary: "Replace the retention rules",
      description:
        "Replaces all rules. If there is a rule for an artifact's kind, the artifact is deleted when it is older " +
        "than `keep_days` and nothing depends on it. Artifacts of other kinds are kept.",
      query: TENANT,
      body: {
        schema: newRulesSchema,
        examples: { a_month: { rules: [{ kind: "raw_dataset", keep_days: 30 }] } },
      },
      responses: { 200: { description: "the rules", schema: rulesSchema } },
      async handle({ principal, query, body }) {
        const userId = tenantOf(principal, query.user_id);
        await transaction(ctx.pool, async (db) => {
          const before = await listRetentionRules(db, userId);
          await replaceRetentionRules(db, userId, body.rules);
          const action = "retention_set";
          const after = body.rules;
          await recordAudit(db, { userId, action, subject: userId, principal, before, after });
        });
        return { rules: await listRetentionRules(ctx.pool, userId) };
      },
    }),
  ];
}
