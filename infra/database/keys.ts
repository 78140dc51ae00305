import { keyDigest, mintKey, type Scope } from "../api-keys";
import { newId } from "../ids";
import { execute, maybeOne, type Queryable } from "./pool";

export interface KeyRow {
  key_id: string;
  user_id: string;
  scope: Scope;
  name: string;
  made_by_admin: boolean;
}

/** The key of this digest, unless it is revoked or expired. */
export async function findKey(db: Queryable, digest: Buffer): Promise<KeyRow | undefined> {
  return await maybeOne<KeyRow>(
    db,
    `select key_id, user_id, scope, name, made_by_admin from api_keys
     where digest = $1 and revoked_at is null and (expires_at is null or expires_at > now())`,
    [digest],
  );
}

export async function ensureUser(db: Queryable, userId: string, name: string): Promise<void> {
  await execute(db, "insert into users (user_id, name) values ($1, $2) on conflict do nothing", [
    userId,
    name,
  ]);
}

export interface NewKey {
  userId: string;
  scope: Scope;
  name: string;
  madeByAdmin: boolean;
  /** An own key text, as the embedded stack keeps it between starts; else one is minted. */
  key?: string;
}

/** Stores a key's digest; the text is returned here and nowhere else. */
export async function createKey(
  db: Queryable,
  given: NewKey,
): Promise<{ keyId: string; key: string }> {
  const key = given.key ?? mintKey(given.scope);
  const keyId = newId("key");
  await execute(
    db,
    `insert into api_keys (key_id, user_id, scope, name, digest, last4, made_by_admin)
     values ($1, $2, $3, $4, $5, $6, $7) on conflict (digest) do nothing`,
    [
      keyId,
      given.userId,
      given.scope,
      given.name,
      keyDigest(key),
      key.slice(-4),
      given.madeByAdmin,
    ],
  );
  return { keyId, key };
}
