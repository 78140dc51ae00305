import { deleteOlder, isOlder } from "../../platform/postgres/clock";
import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

/**
 * Claims an idempotency key, in the transaction that does the request's work. A concurrent claim of the same key waits
 * until that transaction ends.
 *
 * @returns undefined if this call claimed the key; otherwise fingerprint and response of the request that claimed it
 *   before.
 */
export async function claimKey(
  db: Queryable,
  userId: string,
  key: string,
  fingerprint: string,
): Promise<{ fingerprint: string; response: unknown } | undefined> {
  const claimed = await execute(
    db,
    `insert into idempotency as i (user_id, key, fingerprint) values ($1, $2, $3)
     on conflict (user_id, key) do update
       set fingerprint = excluded.fingerprint, response = null, created_at = now()
       where ${isOlder("i.created_at", "interval '24 hours'")}`,
    [userId, key, fingerprint],
  );
  if (claimed === 1) return undefined;
  return await maybeOne(
    db,
    "select fingerprint, response from idempotency where user_id = $1 and key = $2",
    [userId, key],
  );
}

export async function storeResponse(
  db: Queryable,
  userId: string,
  key: string,
  response: unknown,
): Promise<void> {
  await execute(db, "update idempotency set response = $3 where user_id = $1 and key = $2", [
    userId,
    key,
    JSON.stringify(response),
  ]);
}

/** Keys are kept for 25 hours, an hour longer than they are valid. */
const RETENTION = { table: "idempotency", time: "created_at", age: "interval '25 hours'" };

export const deleteOldIdempotencyKeys = (db: Queryable, limit: number): Promise<number> =>
  deleteOlder(db, RETENTION, limit);
