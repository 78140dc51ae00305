import type { Scope } from "../../core/accounts/permissions";
import { newId } from "../../platform/ids";
import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { keyDigest, mintKey } from "./key-format";
import { IS_LIVE, type KeyRow, SHOWN_KEY } from "./keys";

/** How long a session lasts, unless its key expires earlier. */
const SESSION_HOURS = 12;
/** Expired sessions are kept for KEPT_DAYS, then deleted, at most DELETED_AT_ONCE at a time. */
const KEPT_DAYS = 1;
const DELETED_AT_ONCE = 100;

/** The number of a tenant's sessions that are neither revoked nor expired. */
export async function countSessions(db: Queryable, userId: string): Promise<number> {
  const row = await maybeOne<{ n: number }>(
    db,
    `select count(*)::int as n from api_keys
     where user_id = $1 and session_of is not null and expires_at > now() and revoked_at is null`,
    [userId],
  );
  return row?.n ?? 0;
}

/**
 * Creates a session from a key or from another session; undefined if that key or session is not
 * valid. The new session expires no later than its origin, and is revoked together with it.
 */
export async function createSession(
  db: Queryable,
  keyId: string,
  scope: Scope,
): Promise<(KeyRow & { key: string }) | undefined> {
  const key = mintKey(scope);
  const row = await maybeOne<KeyRow>(
    db,
    `insert into api_keys (key_id, user_id, scope, name, digest, last4, made_by_admin, expires_at,
                           made_by_key_id, session_of)
     select $1, user_id, scope, name, $2, $3, made_by_admin,
            least(expires_at, now() + make_interval(hours => ${SESSION_HOURS})),
            key_id, coalesce(session_of, key_id)
     from api_keys where key_id = $4 and ${IS_LIVE}
     returning ${SHOWN_KEY}`,
    [newId("key"), keyDigest(key), key.slice(-4), keyId],
  );
  return row && { ...row, key };
}

/**
 * Deletes a tenant's sessions that expired more than KEPT_DAYS ago. A session is not deleted while
 * another session created from it exists. Keys and machines created by a session don't prevent its
 * deletion: they refer to `ownerKeyId`, the key from which the session was created.
 */
export async function deleteExpiredSessions(db: Queryable, userId: string): Promise<void> {
  await execute(
    db,
    `delete from api_keys where key_id in (
       select key_id from api_keys session
       where user_id = $1 and session_of is not null
         and expires_at < now() - make_interval(days => ${KEPT_DAYS})
         and not exists (select from api_keys made where made.made_by_key_id = session.key_id)
       order by expires_at limit ${DELETED_AT_ONCE})`,
    [userId],
  );
}
