import { setTimeout as sleep } from "node:timers/promises";
import { all, type Queryable } from "../../platform/postgres/pool";

const PAUSE_MS = 50;

/**
 * The open transactions of all Forge processes. A statement outside a transaction counts as one,
 * too.
 */
async function listTransactions(db: Queryable): Promise<Set<string>> {
  const rows = await all<{ id: string }>(
    db,
    `select pid || ' ' || xact_start as id from pg_stat_activity
     where datname = current_database() and application_name = current_setting('application_name') and xact_start is not null
       and pid <> pg_backend_pid()`,
  );
  return new Set(rows.map(({ id }) => id));
}

/**
 * Waits until all currently open transactions of Forge processes have ended, for `timeoutMs` at
 * most. Takes no locks. Don't call it inside a transaction: there, Postgres returns the same
 * snapshot of pg_stat_activity each time.
 */
export async function waitForOpenTransactions(db: Queryable, timeoutMs: number): Promise<void> {
  const giveUpMs = performance.now() + timeoutMs;
  let earlier = await listTransactions(db);
  while (earlier.size > 0 && performance.now() < giveUpMs) {
    await sleep(PAUSE_MS);
    const live = await listTransactions(db);
    earlier = new Set([...earlier].filter((id) => live.has(id)));
  }
}
