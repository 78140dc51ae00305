import { all, execute, type Queryable } from "../../platform/postgres/pool";

export interface StoredKind {
  kind: string;
  artifacts: number;
  bytes: number;
  /**
   * Mean of the stored bytes over the period, in gigabytes (10^9 bytes). If the period is a month,
   * this is the number of GB-months.
   */
  gb_months: number;
}

/**
 * Measures a tenant's storage now and over a period, by kind of artifact. A deleted artifact counts
 * until its deletion. An artifact whose files are outside Forge's store counts as an artifact with
 * 0 bytes.
 *
 * @param end the period's end. The part of the period after now counts with 0 bytes.
 */
export async function measureStorage(db: Queryable, userId: string, start: string, end: string) {
  return await all<StoredKind>(
    db,
    `select kind, count(*) filter (where deleted_at is null)::int as artifacts,
            coalesce(sum(size_bytes) filter (where deleted_at is null), 0)::bigint as bytes,
            coalesce(sum(size_bytes::float8 / 1e9 * greatest(0, extract(epoch from
              least(coalesce(deleted_at, now()), now(), $3::timestamptz)
              - greatest(created_at, $2::timestamptz))))
              / extract(epoch from $3::timestamptz - $2::timestamptz), 0)::float8 as gb_months
     from artifacts
     where user_id = $1 and registered_at is not null and created_at < $3::timestamptz
       and (deleted_at is null or deleted_at > $2::timestamptz)
     group by kind order by kind`,
    [userId, start, end],
  );
}

export interface RetentionRule {
  kind: string;
  keep_days: number;
}

export async function listRetentionRules(db: Queryable, userId: string) {
  return await all<RetentionRule>(
    db,
    "select kind, keep_days from retention_rules where user_id = $1 order by kind",
    [userId],
  );
}

/** Replaces all retention rules of a tenant. Call in a transaction. */
export async function replaceRetentionRules(
  db: Queryable,
  userId: string,
  rules: RetentionRule[],
): Promise<void> {
  await execute(db, "delete from retention_rules where user_id = $1", [userId]);
  await execute(
    db,
    `insert into retention_rules (user_id, kind, keep_days)
     select $1, kind, keep_days from jsonb_to_recordset($2) as rule (kind text, keep_days int)`,
    [userId, JSON.stringify(rules)],
  );
}
