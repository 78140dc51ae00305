import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { invalidKey, type Principal } from "../../core/accounts/principal";
import type { Queryable } from "../../platform/postgres/pool";
import { isWellFormedKey, keyDigest } from "./api-keys";
import type { KeyLookup } from "./key-lookup";
import { touchKeys } from "./keys";

/** What keys are looked up by. */
export interface Doorkeeper {
  db: Queryable;
  keys: KeyLookup;
}

/**
 * Resolves the request's key, from either header, to a principal.
 *
 * @throws 403 when there is none.
 */
export async function authenticate(
  { db, keys }: Doorkeeper,
  message: IncomingMessage,
  canWait = false,
): Promise<Principal> {
  const key = readKey(message);
  if (key === undefined || !isWellFormedKey(key)) throw invalidKey();
  const digest = keyDigest(key);
  const found = await keys.find(digest, canWait);
  if (!found || !timingSafeEqual(found.digest, digest)) throw invalidKey();
  const ownerKeyId = found.session_of ?? found.key_id;
  // Nobody waits for it, and a failure costs a date.
  if (found.is_unnoticed) touchKeys(db, [found.key_id, ownerKeyId]).catch(() => undefined);
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

/** The one key that the request carries, in one header or the same in both. */
function readKey(message: IncomingMessage): string | undefined {
  const { rawHeaders } = message;
  let key: string | undefined;
  // As they were sent: a header that came twice must not hide its second value.
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase();
    const value = rawHeaders[at + 1] ?? "";
    const isOwn = name === "x-service-api-key";
    // Another scheme's is for somebody on the way.
    if (!isOwn && (name !== "authorization" || !/^Bearer\b/i.test(value))) continue;
    const sent = isOwn ? value : /^Bearer\s+(\S+)\s*$/i.exec(value)?.[1];
    if (sent === undefined || (key !== undefined && sent !== key)) return undefined;
    key = sent;
  }
  return key;
}
