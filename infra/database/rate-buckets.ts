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
 * Takes up to `want` whole tokens from a key's bucket, for a process to spend by itself. One statement
 * on one row, so that processes together never take more than there is.
 */
export async function leaseTokens(
  db: Queryable,
  keyId: string,
  want: number,
  size: number,
  perSecond: number,
): Promise<Lease> {
  const lease = await maybeOne<Lease>(
    db,
    `insert into rate_buckets as b (key_id, tokens, granted, refilled_at)
     values ($1, $3::float8 - $2::float8, $2::float8, statement_timestamp())
     on conflict (key_id) do update set
       granted = least($2, floor(${LEVEL})),
       tokens = ${LEVEL} - least($2, floor(${LEVEL})),
       refilled_at = greatest(b.refilled_at, statement_timestamp())
     returning granted, tokens`,
    [keyId, want, size, perSecond],
  );
  if (!lease) throw new Error("upsert returned no bucket");
  return lease;
}
