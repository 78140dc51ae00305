import { maybeOne, type Queryable } from "./pool";

/** What the bucket holds now, never more than its size; $3 its size, $4 tokens a second. */
const LEVEL = `least($3, b.tokens + $4 * greatest(0,
  extract(epoch from statement_timestamp() - b.refilled_at)::float8))`;

export interface Lease {
  granted: number;
  /** Left in the bucket. */
  tokens: number;
}

/**
 * Takes up to `want` whole tokens from a tenant's bucket, for a process to spend by itself. One statement
 * on one row, so that processes together never take more than there is.
 */
export async function leaseTokens(
  db: Queryable,
  userId: string,
  want: number,
  size: number,
  perSecond: number,
): Promise<Lease> {
  const lease = await maybeOne<Lease>(
    db,
    `insert into rate_buckets as b (user_id, tokens, granted, refilled_at)
     values ($1, $3::float8 - $2::float8, $2::float8, statement_timestamp())
     on conflict (user_id) do update set
       granted = least($2, floor(${LEVEL})),
       tokens = ${LEVEL} - least($2, floor(${LEVEL})),
       refilled_at = greatest(b.refilled_at, statement_timestamp())
     returning granted, tokens`,
    [userId, want, size, perSecond],
  );
  if (!lease) throw new Error("upsert returned no bucket");
  return lease;
}

/** Tokens that a tenant has used up and that have not come back; $1 the tenant, $2 the bucket's size. */
export async function countSpentTokens(
  db: Queryable,
  userId: string,
  size: number,
  perSecond: number,
): Promise<number> {
  const row = await maybeOne<{ left: number }>(
    db,
    `select ${LEVEL.replaceAll("$4", "$3").replaceAll("least($3", "least($2")} as left
     from rate_buckets b where user_id = $1`,
    [userId, size, perSecond],
  );
  return row ? Math.max(0, Math.ceil(size - row.left)) : 0;
}
