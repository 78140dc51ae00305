import { z } from "zod";
import { timestamp } from "../../core/timestamp";
import { type Route, route } from "../../platform/http/route";
import { listAudit } from "../../services/accounts/audit";
import type { Context } from "../../services/context";
import { tenantFilter, tenantQuery } from "./tenant-filter";

const entrySchema = z
  .object({
    entry_id: z.int(),
    at: timestamp,
    user_id: z.string().nullable().describe("the user concerned; null: all users"),
    action: z.string(),
    subject: z.string().describe("id of what the action changed"),
    created_by: z.string().describe("the name of the key that did the action"),
    scope: z.string(),
    before: z.unknown(),
    after: z.unknown(),
    hash: z
      .string()
      .describe(
        "hash of this entry and the previous one's hash; `forge-server audit verify` checks it",
      ),
  })
  .meta({ id: "AuditEntry" });

export function auditRoute(ctx: Context): Route {
  return route({
    method: "GET",
    // Deprecated: the second path could be confused with jobs of type `audit`. The next release
    // removes it.
    paths: ["/api/audit-log", "/api/audit"],
    scope: "user",
    operationId: "listAudit",
    tag: "Billing",
    summary: "List audit log entries, newest first",
    description:
      "Changes of keys, workers, retention, budgets and prices, deletions and approvals; for admins, every " +
      "change that they requested. Append-only: each entry contains the hash of the previous one.",
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(200).default(50),
      after: z
        .string()
        .regex(/^\d{1,15}$/, "must be a cursor of this list")
        .optional(),
      ...tenantQuery,
    }),
    responses: {
      200: {
        description: "a page of entries",
        schema: z.object({
          entries: z.array(entrySchema),
          has_more: z.boolean(),
          next_cursor: z.string().nullable(),
        }),
      },
    },
    async handle({ principal, query: { limit, after, user_id: userId } }) {
      const tenantScope = tenantFilter(principal, userId);
      const rows = await listAudit(ctx.pool, tenantScope, after ? Number(after) : null, limit + 1);
      const entries = rows.slice(0, limit).map((entry) => ({
        entry_id: entry.entry_id,
        at: entry.at.toISOString(),
        user_id: entry.user_id,
        action: entry.action,
        subject: entry.subject,
        created_by: entry.created_by,
        scope: entry.scope,
        before: entry.before,
        after: entry.after,
        hash: entry.hash.toString("hex"),
      }));
      const last = entries.at(-1);
      const hasMore = rows.length > limit;
      return {
        entries,
        has_more: hasMore,
        next_cursor: hasMore && last ? String(last.entry_id) : null,
      };
    },
  });
}
