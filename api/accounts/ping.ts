import { z } from "zod";
import { invalidKey, SCOPES } from "../../core/accounts/permissions";
import { timestamp } from "../../core/timestamp";
import { type Route, route } from "../../platform/http/route";
import { findIdentity } from "../../services/accounts/keys";
import type { Context } from "../../services/context";
import { nullableText } from "../fields";

const featuresSchema = z.object({
  temporal_ui_url: nullableText.describe(
    "URL of Temporal's UI; null: not configured, or not visible to this key",
  ),
  ssh_workers: z.boolean().describe("machines can be set up as workers over SSH"),
  budgets: z.boolean(),
  billing_export: z.boolean(),
});

const identitySchema = z
  .object({
    ok: z.literal(true),
    user_id: z.string(),
    user_name: z.string().describe("the tenant's display name"),
    key_id: z.string(),
    key_name: z.string().describe("`created_by` of everything that this key creates"),
    scope: z.enum(SCOPES),
    expires_at: timestamp.nullable(),
    is_session: z
      .boolean()
      .describe("true: the key is a session, made with POST /api/auth/sessions"),
    features: featuresSchema.describe("optional features that this server has"),
  })
  .meta({ id: "Identity" });

export function pingRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/auth/ping"],
    scope: "worker",
    operationId: "ping",
    tag: "Keys",
    summary: "Read the key's identity and the server's features",
    responses: { 200: { description: "the key is valid", schema: identitySchema } },
    async handle({ principal }) {
      const identity = await findIdentity(ctx.pool, principal.keyId);
      // The session has expired and was deleted.
      if (!identity) throw invalidKey();
      const { temporal, http } = ctx.config;
      return {
        ok: true,
        user_id: principal.userId,
        user_name: identity.user_name,
        key_id: principal.keyId,
        key_name: identity.name,
        scope: principal.scope,
        expires_at: identity.expires_at?.toISOString() ?? null,
        is_session: principal.ownerKeyId !== principal.keyId,
        features: {
          temporal_ui_url: principal.scope === "worker" ? null : temporal.uiUrl,
          ssh_workers: http.publicUrl !== undefined,
          budgets: true,
          billing_export: true,
        },
      };
    },
  });
}
