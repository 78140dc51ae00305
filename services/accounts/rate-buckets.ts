import { maybeOne, type Queryable } from "../../platform/postgres/pool";

/** SQL: the current tokens of bucket `b`. Both arguments are SQL placeholders such as `$3`. */
const levelOf = (size: string, perSecond: string): string =>
  `least(${size}, b.tokens + ${perSecond} * greatest(0,
     extract(epoch from statement_timestamp() - b.refilled_at)::float8))`;

/**
 * Takes up to `want` whole tokens from a tenant's bucket, for a process to spend locally
 * (rate-limit.ts). One statement updates one row, so all processes together never take more tokens
 * than there are.
 *
 * @returns the tokens taken (`granted`), and those left in the bucket (`tokens`).
 */
export async function leaseTokens(
  db: Queryable,
  userId: string,
  want: number,
  size: number,
  perSecond: number,
): Promise<{ granted: number; tokens: number }> {
  const level = levelOf("$3", "$4");
  const lease = await maybeOne<{ granted: number; tokens: number }>(
    db,
    `insert into rate_buckets as b (user_id, tokens, granted, refilled_at)
     values ($1, $3::float8 - $2::float8, $2::float8, statement_timestamp())
     on conflict (user_id) do update set
       granted = least($2, floor(${level})),
       tokens = ${level} - least($2, floor(${level})),
       refilled_at = greatest(b.refilled_at, statement_timestamp())
     returning granted, tokens`,
    [userId, want, size, perSecond],
  );
  if (!lease) throw new Error("upsert returned no bucket");
  return lease;
}

/** Tokens that a tenant has used and that are not refilled yet. */
export async function countSpentTokens(
  db: Queryable,
  userId: string,
  size: number,
  perSecond: number,
): Promise<number> {
  const row = await maybeOne<{ left: number }>(
    db,
    `select ${levelOf("$2", "$3")} as left from rate_buckets b where user_id = $1`,
    [userId, size, perSecond],
  );
  return row ? Math.max(0, Math.ceil(size - row.left)) : 0;
}
