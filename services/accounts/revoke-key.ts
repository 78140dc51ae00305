import { type Principal, tenantScopeOf } from "../../core/accounts/permissions";
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
 * @throws NotFound if the key does not exist, or if the caller is not allowed to revoke it.
 */
export async function revokeKey(
  ctx: Context,
  keyId: string,
  principal: Principal,
): Promise<string[]> {
  const ended = await transaction(ctx.pool, async (db) => {
    // A concurrent request may use this key to create a child key. Both requests take the tenant's
    // lock. If the child key is committed first, it is revoked below. Otherwise that request finds
    // this key revoked, and fails.
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
