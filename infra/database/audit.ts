import { all, execute, type Queryable } from "./pool";
import type { Viewer } from "./viewer";

export interface AuditEntry {
  /** Whose money it is about; null: everybody's. */
  userId: string | null;
  /** What was done, in the past tense and stable: `payment_customer_set`. */
  action: string;
  /** What it was done to. */
  subject: string;
  /** Who did it. */
  principal: { keyId: string; keyName: string; scope: string };
  /** Left out: there was nothing, or nothing is left. */
  before?: unknown;
  after?: unknown;
}

/** Part of the transaction that changes what it tells of. */
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
}

/** The newest entries about a tenant; of everybody for an admin. */
export async function listAudit(
  db: Queryable,
  viewer: Viewer,
  before: number | null,
  limit: number,
): Promise<AuditRow[]> {
  return await all<AuditRow & Record<string, unknown>>(
    db,
    `select * from audit_entries
     where ($1::text is null or user_id = $1) and ($2::bigint is null or entry_id < $2)
     order by entry_id desc limit $3`,
    [viewer, before, limit],
  );
}
