import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { invalidKey, type Principal } from "../../core/accounts/permissions";
import type { Queryable } from "../../platform/postgres/pool";
import type { KeyCache } from "./key-cache";
import { isWellFormedKey, keyDigest } from "./key-format";
import { updateLastUsed } from "./keys";

/**
 * Returns the principal of the request's API key (header `X-Service-Api-Key` or `Authorization`).
 * key-format.ts checks and hashes the key. key-cache.ts looks up the hash.
 *
 * @param canWait whether the lookup may wait to be batched with others.
 * @throws 403 if there is no valid key.
 */
export async function authenticate(
  { db, keys }: { db: Queryable; keys: KeyCache },
  message: IncomingMessage,
  canWait = false,
): Promise<Principal> {
  const key = readKey(message);
  if (key === undefined || !isWellFormedKey(key)) throw invalidKey();
  const digest = keyDigest(key);
  const found = await keys.find(digest, canWait);
  if (!found || !timingSafeEqual(found.digest, digest)) throw invalidKey();
  const ownerKeyId = found.session_of ?? found.key_id;
  // Not awaited: a failure only leaves `last_used_at` out of date.
  if (found.is_touch_due) updateLastUsed(db, [found.key_id, ownerKeyId]).catch(() => undefined);
  return {
    userId: found.user_id,
    keyId: found.key_id,
    ownerKeyId,
    keyName: found.name,
    scope: found.scope,
    sharesWorkers: found.scope === "admin" || (found.scope === "worker" && found.made_by_admin),
    workerLimit: found.workers,
  };
}

/** The request's key; undefined if the request has no key, or two different ones. */
function readKey(message: IncomingMessage): string | undefined {
  const { rawHeaders } = message;
  let key: string | undefined;
  // Raw headers, because the parsed ones hide the second value of a repeated header.
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase();
    const value = rawHeaders[at + 1] ?? "";
    const isOwn = name === "x-service-api-key";
    // `Authorization` with another scheme is meant for a proxy between client and Forge: ignore it.
    if (!isOwn && (name !== "authorization" || !/^Bearer\b/i.test(value))) continue;
    const sent = isOwn ? value : /^Bearer\s+(\S+)\s*$/i.exec(value)?.[1];
    if (sent === undefined || (key !== undefined && sent !== key)) return undefined;
    key = sent;
  }
  return key;
}
