import type { Scope, TenantScope } from "../../core/accounts/permissions";
import { newId } from "../../platform/ids";
import { listPage, type Page, Where, type WithPosition } from "../../platform/postgres/pages";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { keyDigest, mintKey } from "./key-format";

export interface AuthenticatingRow {
  key_id: string;
  user_id: string;
  scope: Scope;
  name: string;
  made_by_admin: boolean;
  /** The maximum number of workers bound to the key; null: no limit. */
  workers: number | null;
  digest: Buffer;
  /** Whether `last_used_at` is null or more than a minute old. */
  is_touch_due: boolean;
  /**
   * For a session: the id of the key from which it was created, directly or through other sessions.
   */
  session_of: string | null;
  /** Null if the key never expires. */
  expires_in_ms: number | null;
}

/** SQL: whether a key is neither revoked nor expired. */
export const IS_LIVE = "revoked_at is null and (expires_at is null or expires_at > now())";

/** Finds the valid keys with these digests. */
export async function findKeys(db: Queryable, digests: Buffer[]) {
  return await all<AuthenticatingRow>(
    db,
    `select key_id, user_id, scope, name, made_by_admin, workers, digest, session_of,
            last_used_at is null or last_used_at < now() - interval '1 minute' as is_touch_due,
            (extract(epoch from expires_at - now()) * 1000)::float8 as expires_in_ms
     from api_keys where digest = any($1::bytea[]) and ${IS_LIVE}`,
    [digests],
  );
}

/** Updates `last_used_at` of keys, at most once a minute. */
export async function updateLastUsed(db: Queryable, keyIds: string[]): Promise<void> {
  await execute(
    db,
    `update api_keys set last_used_at = now()
     where key_id = any($1) and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
    [keyIds],
  );
}

/** Returns those of the given keys that are revoked or expired. */
export async function listInvalidKeys(db: Queryable, keyIds: string[]): Promise<string[]> {
  const rows = await all<{ key_id: string }>(
    db,
    `select key_id from api_keys where key_id = any($1) and not (${IS_LIVE})`,
    [keyIds],
  );
  return rows.map((row) => row.key_id);
}

export interface KeyRow {
  key_id: string;
  user_id: string;
  scope: Scope;
  name: string;
  last4: string;
  created_at: Date;
  expires_at: Date | null;
  last_used_at: Date | null;
  revoked_at: Date | null;
  workers: number | null;
  serving_hosts: string[];
  made_by_key_id: string | null;
  session_of: string | null;
}

export const SHOWN_KEY = `key_id, user_id, scope, name, last4, created_at, expires_at, last_used_at,
  revoked_at, workers, serving_hosts, made_by_key_id, session_of`;

/** A tenant's keys, or its sessions, newest first, including revoked ones. */
export async function listKeys(
  db: Queryable,
  userId: string,
  areSessions: boolean,
  page: Page,
): Promise<WithPosition<KeyRow>[]> {
  const where = new Where()
    .andIfSet(userId, (user) => `user_id = ${user}`)
    .and(`session_of is ${areSessions ? "not null" : "null"}`);
  const order: [string, string] = ["created_at", "key_id"];
  return await listPage<KeyRow>(db, { select: SHOWN_KEY, from: "api_keys", order, where, page });
}

/**
 * Revokes a key and all keys that it created, directly or indirectly. Idempotent. Only an admin can
 * revoke the key of an admin.
 *
 * @returns the revoked keys; none if the tenant scope has no such key.
 */
export async function markRevoked(db: Queryable, keyId: string, tenantScope: TenantScope) {
  return await all<{ key_id: string; user_id: string }>(
    db,
    `with recursive ended as (
       select key_id from api_keys
       where key_id = $1 and ($2::text is null or user_id = $2 and scope <> 'admin')
       union
       select k.key_id from api_keys k join ended on k.made_by_key_id = ended.key_id)
     update api_keys k set revoked_at = coalesce(revoked_at, now())
     from ended where k.key_id = ended.key_id returning k.key_id, k.user_id`,
    [keyId, tenantScope],
  );
}

/**
 * The time at which a key expires. Null if the key never expires. Undefined if the key is revoked,
 * expired or unknown.
 */
export async function findExpiry(db: Queryable, keyId: string): Promise<Date | null | undefined> {
  const row = await maybeOne<{ expires_at: Date | null }>(
    db,
    `select expires_at from api_keys where key_id = $1 and ${IS_LIVE}`,
    [keyId],
  );
  return row?.expires_at;
}

export async function findIdentity(db: Queryable, keyId: string) {
  return await maybeOne<{ name: string; expires_at: Date | null; user_name: string }>(
    db,
    `select k.name, k.expires_at, u.name as user_name from api_keys k join users u using (user_id)
     where k.key_id = $1`,
    [keyId],
  );
}

export async function isLiveKey(db: Queryable, keyId: string): Promise<boolean> {
  return (await findExpiry(db, keyId)) !== undefined;
}

/** Locks the key's row, so that only one transaction at a time binds workers to it. */
export async function lockKey(db: Queryable, keyId: string): Promise<void> {
  await maybeOne(db, "select from api_keys where key_id = $1 for no key update", [keyId]);
}

export async function countBoundWorkers(db: Queryable, keyId: string): Promise<number> {
  const row = await maybeOne<{ n: number }>(
    db,
    `select count(*)::int as n from workers where bound_key_id = $1 and decommissioned_at is null`,
    [keyId],
  );
  return row?.n ?? 0;
}

/** The tenant of a key; undefined if there is no such key. */
export async function findKeyOwner(db: Queryable, keyId: string): Promise<string | undefined> {
  const row = await maybeOne<{ user_id: string }>(
    db,
    "select user_id from api_keys where key_id = $1",
    [keyId],
  );
  return row?.user_id;
}

export interface NewKey {
  userId: string;
  scope: Scope;
  name: string;
  madeByAdmin: boolean;
  expiresAt?: string | null;
  /** The key that created this key. Revoking that key revokes this one. */
  madeByKeyId?: string;
  /**
   * For a worker key: the maximum number of workers bound to it. `servingHosts`: additional hosts
   * that may serve these workers' models.
   */
  workers?: number | null;
  servingHosts?: string[];
  /**
   * The key's secret value; generated if undefined. `npm start` passes keys that it keeps in a
   * file.
   */
  key?: string;
}

/** Creates a key. Only its digest is stored, so this is the only time its text is returned. */
export async function createKey(db: Queryable, given: NewKey): Promise<KeyRow & { key: string }> {
  const key = given.key ?? mintKey(given.scope);
  const row = await maybeOne<KeyRow>(
    db,
    `insert into api_keys (key_id, user_id, scope, name, digest, last4, made_by_admin, expires_at,
                           made_by_key_id, workers, serving_hosts)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (digest) do update set digest = excluded.digest
     returning ${SHOWN_KEY}`,
    [
      newId("key"),
      given.userId,
      given.scope,
      given.name,
      keyDigest(key),
      key.slice(-4),
      given.madeByAdmin,
      given.expiresAt ?? null,
      given.madeByKeyId ?? null,
      given.workers ?? null,
      given.servingHosts ?? [],
    ],
  );
  if (!row) throw new Error("insert returned no key");
  return { ...row, key };
}
