import type { Scope, TenantScope } from "../../core/accounts/principal";
import { newId } from "../../platform/ids";
import { listPage, type Page, Where, type WithPosition } from "../../platform/postgres/pages";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { keyDigest, mintKey } from "./api-keys";

export interface AuthenticatingRow {
  key_id: string;
  user_id: string;
  scope: Scope;
  name: string;
  made_by_admin: boolean;
  /** For how many workers it is; null: for any of its tenant's. */
  workers: number | null;
  digest: Buffer;
  /** Its last use was not noted within the last minute. */
  is_unnoticed: boolean;
  /** Of a session: the key that was exchanged for it. */
  session_of: string | null;
  /** Null: never. */
  expires_in_ms: number | null;
}

/** Of a key that is neither revoked nor expired. */
export const IS_LIVE = "revoked_at is null and (expires_at is null or expires_at > now())";

/** The keys of these digests that are neither revoked nor expired. */
export async function findKeys(db: Queryable, digests: Buffer[]): Promise<AuthenticatingRow[]> {
  return await all<AuthenticatingRow>(
    db,
    `select key_id, user_id, scope, name, made_by_admin, workers, digest, session_of,
            last_used_at is null or last_used_at < now() - interval '1 minute' as is_unnoticed,
            (extract(epoch from expires_at - now()) * 1000)::float8 as expires_in_ms
     from api_keys where digest = any($1::bytea[]) and ${IS_LIVE}`,
    [digests],
  );
}

/** Notes that keys are in use: a session, and the key that it was exchanged for. At most once a minute. */
export async function touchKeys(db: Queryable, keyIds: string[]): Promise<void> {
  await execute(
    db,
    `update api_keys set last_used_at = now()
     where key_id = any($1) and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
    [keyIds],
  );
}

/** Of these keys, those that no longer open anything. */
export async function listDeadKeys(db: Queryable, keyIds: string[]): Promise<string[]> {
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
  /** Null: never. */
  expires_in_ms: number | null;
}

export const SHOWN_KEY = `key_id, user_id, scope, name, last4, created_at, expires_at, last_used_at,
  revoked_at, workers, serving_hosts, made_by_key_id, session_of`;

/** A tenant's keys, or its sessions, newest first; the revoked ones among them. */
export async function listKeys(
  db: Queryable,
  userId: string,
  areSessions: boolean,
  page: Page,
): Promise<WithPosition<KeyRow>[]> {
  const where = new Where()
    .also(userId, (user) => `user_id = ${user}`)
    .and(`session_of is ${areSessions ? "not null" : "null"}`);
  const order: [string, string] = ["created_at", "key_id"];
  return await listPage<KeyRow>(db, { select: SHOWN_KEY, from: "api_keys", order, where, page });
}

interface RevokedKey {
  key_id: string;
  user_id: string;
}

/**
 * Revokes a key and all that it made, and those made; a second time changes nothing. The ids of them,
 * none: there is no such key for this viewer, for whom an admin's key is none unless he is one himself.
 */
export async function revokeKey(
  db: Queryable,
  keyId: string,
  tenantScope: TenantScope,
): Promise<RevokedKey[]> {
  return await all<RevokedKey & Record<string, unknown>>(
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

/** When a key that opens something expires, `null` for never; undefined: it opens nothing any more. */
export async function findExpiry(db: Queryable, keyId: string): Promise<Date | null | undefined> {
  const row = await maybeOne<{ expires_at: Date | null }>(
    db,
    `select expires_at from api_keys where key_id = $1 and ${IS_LIVE}`,
    [keyId],
  );
  return row?.expires_at;
}

export interface IdentityRow {
  name: string;
  expires_at: Date | null;
  user_name: string;
}

/** A key's name and expiry, and its tenant's name. */
export async function findIdentity(db: Queryable, keyId: string): Promise<IdentityRow | undefined> {
  return await maybeOne<IdentityRow & Record<string, unknown>>(
    db,
    `select k.name, k.expires_at, u.name as user_name from api_keys k join users u using (user_id)
     where k.key_id = $1`,
    [keyId],
  );
}

export async function isLiveKey(db: Queryable, keyId: string): Promise<boolean> {
  return (await findExpiry(db, keyId)) !== undefined;
}

/** Holds off other transactions that bind workers to this key. */
export async function lockKey(db: Queryable, keyId: string): Promise<void> {
  await maybeOne(db, "select from api_keys where key_id = $1 for no key update", [keyId]);
}

/** How many workers a limited key has. */
export async function countBoundWorkers(db: Queryable, keyId: string): Promise<number> {
  const row = await maybeOne<{ n: number }>(
    db,
    `select count(*)::int as n from workers where bound_key_id = $1 and decommissioned_at is null`,
    [keyId],
  );
  return row?.n ?? 0;
}

/** Whose key it is; undefined: there is none. */
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
  /** The key that asked for it, which takes it along when it is revoked. */
  madeByKeyId?: string;
  /** A worker key for so many workers, and the hosts that their models may be served from. */
  workers?: number | null;
  servingHosts?: string[];
  /** An own key text, as the embedded stack keeps it between starts; else one is minted. */
  key?: string;
}

/** Stores a key's digest; the text is returned here and nowhere else. */
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
