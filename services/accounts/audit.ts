/**
 * The audit log: records, reads and verifies entries. A trigger (migration 0015) gives each new
 * entry a hash of its content and of the previous entry's hash, so that later changes can be
 * detected.
 */
import type { TenantScope } from "../../core/accounts/permissions";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

export interface AuditEntry {
  /** The tenant concerned; null for all tenants. */
  userId: string | null;
  /** A stable code in the past tense: `payment_customer_set`. */
  action: string;
  /** The id of what was changed. */
  subject: string;
  /** The key that made the change. */
  principal: { keyId: string; keyName: string; scope: string };
  /** The values before and after the change. `after` can also hold details, such as a reason. */
  before?: unknown;
  after?: unknown;
}

/**
 * Records an audit entry. Call it in the transaction of the change, as its last statement: it
 * blocks all other audit entries until the transaction ends, so a later wait for a lock could
 * deadlock.
 */
export async function recordAudit(db: Queryable, entry: AuditEntry): Promise<void> {
  const { userId, action, subject, principal, before, after } = entry;
  await execute(
    db,
    `insert into audit_entries (user_id, action, subject, key_id, created_by, scope, before, after)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      userId,
      action,
      subject,
      principal.keyId,
      principal.keyName,
      principal.scope,
      before === undefined ? null : JSON.stringify(before),
      after === undefined ? null : JSON.stringify(after),
    ],
  );
}

export interface AuditRow {
  entry_id: number;
  at: Date;
  user_id: string | null;
  action: string;
  subject: string;
  created_by: string;
  scope: string;
  before: unknown;
  after: unknown;
  hash: Buffer;
}

/** The newest entries about a tenant, or for an admin about all tenants. */
export async function listAudit(
  db: Queryable,
  tenantScope: TenantScope,
  before: number | null,
  limit: number,
) {
  return await all<AuditRow>(
    db,
    `select * from audit_entries
     where ($1::text is null or user_id = $1) and ($2::bigint is null or entry_id < $2)
     order by entry_id desc limit $3`,
    [tenantScope, before, limit],
  );
}

/**
 * Entries whose content was changed, or whose `prev_hash` is not the hash of the entry before.
 * Returns at most 1000 entries.
 */
export async function listBrokenEntries(db: Queryable) {
  return await all<{ entry_id: number; fault: string }>(
    db,
    `select entry_id, case when hash <> computed then 'was changed'
                           else 'does not follow the one before it' end as fault
     from (select entry_id, prev_hash, hash,
                  lag(hash, 1, ''::bytea) over (order by entry_id) as before,
                  sha256(prev_hash || convert_to(audit_text(e), 'UTF8')) as computed
           from audit_entries e) chained
     where hash <> computed or prev_hash <> before order by entry_id limit 1000`,
  );
}

/** The number of entries and the hash of the last one, in hex. */
export async function findAuditEnd(db: Queryable): Promise<{ entries: number; hash: string }> {
  const row = await maybeOne<{ entries: number; hash: string }>(
    db,
    `select (select count(*) from audit_entries)::int as entries, coalesce((
       select encode(hash, 'hex') from audit_entries order by entry_id desc limit 1), 'none') as hash`,
  );
  return row ?? { entries: 0, hash: "none" };
}

/** Whether an entry has this hash. @param hash in hex. */
export async function hasAuditHash(db: Queryable, hash: string): Promise<boolean> {
  const row = await maybeOne(
    db,
    "select 1 as one from audit_entries where encode(hash, 'hex') = lower($1)",
    [hash],
  );
  return row !== undefined;
}
