import { z } from "zod";
import { insufficientScope, invalidKey, SCOPES } from "../../core/accounts/permissions";
import { InvalidRequest } from "../../core/errors";
import { HOST_NAME } from "../../core/fleet/host-name";
import { label } from "../../core/label";
import { givenTime } from "../../core/timestamp";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { idempotencyHeader } from "../../platform/http/openapi";
import { type Route, route } from "../../platform/http/route";
import { recordAudit } from "../../services/accounts/audit";
import { createOnce } from "../../services/accounts/idempotency-keys";
import { createKey, findExpiry, listKeys } from "../../services/accounts/keys";
import { requireRoomForKey } from "../../services/accounts/require-room";
import { revokeKey } from "../../services/accounts/revoke-key";
import type { Context } from "../../services/context";
import { keySchema, newKeySchema, presentKey, presentNewKey, withoutSecret } from "./present-key";
import { tenantOf, tenantQuery } from "./tenant-filter";

const newKeyBody = z.strictObject({
  name: label(128).default("default"),
  scope: z.enum(SCOPES).default("user").describe("a user key can create only user and worker keys"),
  expires_at: givenTime
    .nullish()
    .describe(
      "when the key expires; null: never. A key that expires can only create keys that expire no later",
    ),
  workers: z
    .int()
    .min(1)
    .max(100_000)
    .nullish()
    .describe(
      "for a worker key: how many workers it may register and act for; by default any number",
    ),
  serving_hosts: z
    .array(z.string().regex(HOST_NAME, "must be a host name or an IP address"))
    .max(16)
    .default([])
    .describe(
      "additional hosts that may serve the models of the key's workers, besides the workers' own " +
        "addresses; requires `workers`",
    ),
});

const sessionsQuery = {
  sessions: z
    .enum(["true", "false"])
    .default("false")
    .describe("true: list sessions (which keys were exchanged for) instead of keys"),
};

type NewKeyBody = z.output<typeof newKeyBody>;

export function apiKeyRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "POST",
      paths: ["/api/auth/api-keys"],
      scope: "user",
      operationId: "createApiKey",
      tag: "Keys",
      summary: "Create a key",
      description:
        "Only this answer has the key's secret value: a repeat with the same Idempotency-Key has `key` null. A key " +
        "that a session creates belongs to the session's own key, and stays valid when the session ends.",
      headers: idempotencyHeader,
      body: {
        schema: newKeyBody,
        examples: {
          worker: { name: "gpu-box-1", scope: "worker", workers: 1 },
          expiring: { name: "ci", expires_at: "2100-01-01T00:00:00Z" },
        },
      },
      responses: { 201: { description: "the key", schema: newKeySchema } },
      errorCodes: { 409: ["quota_exceeded"] },
      async handle(call) {
        const { principal, body } = call;
        if (body.scope === "admin" && principal.scope !== "admin") {
          throw insufficientScope("only an admin's key can create admin keys", "scope");
        }
        requireWorkerFieldsMatch(body);
        const { answer } = await createOnce(ctx, call, {
          content: body,
          replay: withoutSecret,
          create: async (db) => {
            await requireRoomForKey(db, ctx.config.limits.caps, principal.userId);
            const expiry = await findExpiry(db, principal.ownerKeyId);
            // The key was revoked after the request started.
            if (expiry === undefined) throw invalidKey();
            requireExpiryBy(body.expires_at, expiry);
            const created = await createKey(db, {
              userId: principal.userId,
              scope: body.scope,
              name: body.name,
              expiresAt: body.expires_at ?? null,
              madeByAdmin: principal.scope === "admin",
              madeByKeyId: principal.ownerKeyId,
              workers: body.workers ?? null,
              servingHosts: body.serving_hosts,
            });
            const { key_id: subject, name, scope, expires_at, workers, serving_hosts } = created;
            await recordAudit(db, {
              userId: principal.userId,
              action: "key_created",
              subject,
              principal,
              after: { name, scope, expires_at, workers, serving_hosts },
            });
            return presentNewKey(created);
          },
        });
        call.reply.header("cache-control", "no-store");
        return answer;
      },
    }),
    route({
      method: "GET",
      paths: ["/api/auth/api-keys"],
      scope: "user",
      operationId: "listApiKeys",
      tag: "Keys",
      summary: "List the caller's keys, newest first",
      description: "Includes revoked and expired keys. Lists sessions only with `sessions=true`.",
      query: z.strictObject({ ...pageQuery, ...tenantQuery, ...sessionsQuery }),
      responses: { 200: { description: "a page of keys", schema: listOf("api_keys", keySchema) } },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const userId = tenantOf(principal, query.user_id);
        const rows = await listKeys(ctx.pool, userId, query.sessions === "true", page);
        return presentPage("api_keys", rows, page, (key) => key.key_id, presentKey);
      },
    }),
    route({
      method: "DELETE",
      paths: ["/api/auth/api-keys/:key_id"],
      scope: "user",
      operationId: "revokeApiKey",
      tag: "Keys",
      summary: "Revoke a key",
      description:
        "Takes effect at once in all server processes, also for all keys that this key created. Waiting " +
        "requests with these keys end. Revoking a key again changes nothing.",
      responses: {
        200: {
          description: "the key is no longer valid",
          schema: z.object({ key_id: z.string(), revoked: z.literal(true) }),
        },
      },
      errorCodes: { 404: ["api_key_not_found"] },
      async handle({ params: { key_id: keyId = "" }, principal, request }) {
        const ended = await revokeKey(ctx, keyId, principal);
        request.log.info({ key_id: keyId, by: principal.keyId, keys: ended.length }, "key revoked");
        return { key_id: keyId, revoked: true };
      },
    }),
  ];
}

function requireWorkerFieldsMatch({ scope, workers, serving_hosts: hosts }: NewKeyBody): void {
  if (workers != null && scope !== "worker") {
    const message = 'only a key of scope "worker" can have a number of workers';
    throw new InvalidRequest(message, "workers");
  }
  if (hosts.length > 0 && workers == null) {
    const message = "requires `workers`: the hosts apply to the key's own workers only";
    throw new InvalidRequest(message, "serving_hosts");
  }
}

/** A key that expires can't create a key that expires later. */
function requireExpiryBy(requested: string | null | undefined, latest: Date | null): void {
  if (latest === null || (requested && Date.parse(requested) <= latest.getTime())) return;
  const message = `must be no later than ${latest.toISOString()}, when the key that creates it expires`;
  throw new InvalidRequest(message, "expires_at");
}
