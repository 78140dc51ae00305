import type { Scope } from "../../core/accounts/permissions";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";

export interface NewTicket {
  digest: Buffer;
  keyId: string;
  userId: string;
  storageId: string;
  path: string;
  lastsS: number;
}

/** Stores a ticket and returns when it expires. Also deletes up to 100 expired tickets. */
export async function insertTicket(db: Queryable, ticket: NewTicket): Promise<Date> {
  const row = await maybeOne<{ expires_at: Date }>(
    db,
    `with old as (
       delete from download_tickets where digest in (
         select digest from download_tickets where expires_at < now() order by expires_at limit 100))
     insert into download_tickets (digest, key_id, user_id, storage_id, path, expires_at)
     values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6)) returning expires_at`,
    [ticket.digest, ticket.keyId, ticket.userId, ticket.storageId, ticket.path, ticket.lastsS],
  );
  if (!row) throw new Error("insert returned no ticket");
  return row.expires_at;
}

/** A ticket's file, and the API key that requested the ticket. */
export interface TicketRow {
  user_id: string;
  storage_id: string;
  path: string;
  key_id: string;
  key_user_id: string;
  scope: Scope;
}

/** Finds a ticket that has not expired and whose key is still valid. */
export async function findTicket(db: Queryable, digest: Buffer) {
  return await maybeOne<TicketRow>(
    db,
    `select t.user_id, t.storage_id, t.path, k.key_id, k.user_id as key_user_id, k.scope
     from download_tickets t join api_keys k using (key_id)
     where t.digest = $1 and t.expires_at > now() and k.revoked_at is null
       and (k.expires_at is null or k.expires_at > now())`,
    [digest],
  );
}
