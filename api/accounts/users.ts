import { z } from "zod";
import { Conflict } from "../../core/errors";
import { label } from "../../core/label";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { idempotencyHeader } from "../../platform/http/openapi";
import { type Route, route } from "../../platform/http/route";
import { newId } from "../../platform/ids";
import { createOnce } from "../../services/accounts/idempotency-keys";
import { createKey } from "../../services/accounts/keys";
import { createUser, listUsers } from "../../services/accounts/users";
import type { Context } from "../../services/context";
import { newKeySchema, presentNewKey, withoutSecret } from "./present-key";
import { presentUser, userFields, userSchema } from "./present-user";

/**
 * The allowed user ids, as in the users table's constraint. A user id becomes a path segment of
 * billing files.
 */
const USER_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const newUserBody = z.strictObject({
  name: label(256),
  user_id: z.string().regex(USER_ID, "letters, digits, . _ -; at most 64").optional(),
});

const newUserSchema = z
  .object({ ...userFields, api_key: newKeySchema.describe("the user's first key") })
  .meta({ id: "NewUser" });

export function userRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "POST",
      paths: ["/api/admin/users"],
      scope: "admin",
      operationId: "createUser",
      tag: "Users",
      summary: "Create a user and its first key",
      headers: idempotencyHeader,
      body: {
        schema: newUserBody,
        examples: { team: { name: "Language team", user_id: "lang-team" } },
      },
      responses: {
        201: { description: "the user and its key's secret value", schema: newUserSchema },
      },
      errorCodes: { 409: ["user_id_taken"] },
      async handle(call) {
        const { name, user_id: userId = newId("usr") } = call.body;
        const { answer } = await createOnce(ctx, call, {
          content: call.body,
          async create(db) {
            const user = await createUser(db, userId, name);
            if (!user)
              throw new Conflict("user_id_taken", `user "${userId}" already exists`, "user_id");
            const key = { userId, scope: "user", name: "first key", madeByAdmin: true } as const;
            return { ...presentUser(user), api_key: presentNewKey(await createKey(db, key)) };
          },
          replay: (first) => ({ ...first, api_key: withoutSecret(first.api_key) }),
        });
        call.reply.header("cache-control", "no-store");
        return answer;
      },
    }),
    route({
      method: "GET",
      paths: ["/api/admin/users"],
      scope: "admin",
      operationId: "listUsers",
      tag: "Users",
      summary: "List users, newest first",
      query: z.strictObject(pageQuery),
      responses: { 200: { description: "a page of users", schema: listOf("users", userSchema) } },
      async handle({ query }) {
        const page = pageOf(query);
        const rows = await listUsers(ctx.pool, page);
        return presentPage("users", rows, page, (user) => user.user_id, presentUser);
      },
    }),
  ];
}
