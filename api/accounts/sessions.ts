import { z } from "zod";
import { invalidKey } from "../../core/accounts/permissions";
import { idempotencyHeader } from "../../platform/http/openapi";
import { type Route, route } from "../../platform/http/route";
import { recordAudit } from "../../services/accounts/audit";
import { createOnce } from "../../services/accounts/idempotency-keys";
import { requireRoomForSession } from "../../services/accounts/require-room";
import { createSession, deleteExpiredSessions } from "../../services/accounts/sessions";
import type { Context } from "../../services/context";
import { newKeySchema, presentNewKey, withoutSecret } from "./present-key";

export function sessionRoute(ctx: Context): Route {
  return route({
    method: "POST",
    paths: ["/api/auth/sessions"],
    scope: "user",
    operationId: "createSession",
    tag: "Keys",
    summary: "Exchange a key for a session",
    description:
      "A session is a key of the same scope and name for 12 hours, for a client that should not keep the " +
      "key itself. The session ends when the key is revoked or expires. Sign out by revoking the session. " +
      "What the session creates belongs to the key, and stays when the session ends. Only this answer has " +
      "the session's text: a repeat with the same Idempotency-Key has `key` null.",
    headers: idempotencyHeader,
    body: { schema: z.strictObject({}), examples: {}, optional: true },
    responses: { 201: { description: "the session", schema: newKeySchema } },
    errorCodes: { 409: ["quota_exceeded"] },
    async handle(call) {
      const { principal } = call;
      const { answer } = await createOnce(ctx, call, {
        content: {},
        replay: withoutSecret,
        create: async (db) => {
          await deleteExpiredSessions(db, principal.userId);
          // This check locks the tenant until the commit. A concurrent revocation of the key waits
          // for the lock, so it also revokes the new session.
          await requireRoomForSession(db, ctx.config.limits.caps, principal.userId);
          const session = await createSession(db, principal.keyId, principal.scope);
          if (!session) throw invalidKey();
          await recordAudit(db, {
            userId: principal.userId,
            action: "session_created",
            subject: session.key_id,
            principal,
            after: { expires_at: session.expires_at },
          });
          return presentNewKey(session);
        },
      });
      call.reply.header("cache-control", "no-store");
      return answer;
    },
  });
}
