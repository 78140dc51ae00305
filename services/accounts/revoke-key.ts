import { type Principal, tenantScopeOf } from "../../core/accounts/principal";
import { NotFound } from "../../core/errors";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../context";
import { recordAudit } from "./audit";
import { findKeyOwner, markRevoked } from "./keys";
import { lockTenant } from "./quotas";

/**
 * Revokes a key and all keys that it created. Idempotent.
 *
 * @returns the revoked keys.
 * @throws NotFound if the caller may not see such a key.
 */
export async function revokeKey(
  ctx: Context,
  keyId: string,
  principal: Principal,
): Promise<string[]> {
  const ended = await transaction(ctx.pool, async (db) => {
    // Another request may be creating a key with the key that is revoked here. Both requests take the tenant's lock.
    // Either the new key is committed first and is revoked below, or the other request finds its key revoked and fails.
    const owner = await findKeyOwner(db, keyId);
    if (owner !== undefined) await lockTenant(db, owner);
    const keys = await markRevoked(db, keyId, tenantScopeOf(principal));
    const [first] = keys;
    if (!first) throw new NotFound("api_key", keyId, "key_id");
    const ids = keys.map(({ key_id }) => key_id);
    await recordAudit(db, {
      userId: first.user_id,
      action: "key_revoked",
      subject: keyId,
      principal,
      after: { keys: ids },
    });
    return ids;
  });
  for (const each of ended) await ctx.signals.revoked(each);
  return ended;
}
