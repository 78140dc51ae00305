import { execute, maybeOne, type Queryable } from "./pool";

/** The database's time, the only one that is stored; ISO 8601 UTC. */
export async function readClock(db: Queryable): Promise<string> {
  const row = await maybeOne<{ now: Date }>(db, "select now()");
  if (!row) throw new Error("select now() returned no row");
  return row.now.toISOString();
}

/** Any fixed number: of the processes that see a step, one at a time writes it. */
const STEP_LOCK = 7_263_003;

/**
 * The clock was set forward by `byS` seconds since `since`, as somebody saw it: attempts that began before are
 * to run, and be billed, for as long as if it had not been. Deployments are billed without
 * the step because of the row (lifetime.ts). Call in a transaction. How many attempts were moved; 0 where another
 * process did.
 */
export async function followStep(db: Queryable, byS: number, since: Date): Promise<number> {
  await execute(db, `select pg_advisory_xact_lock(${STEP_LOCK})`);
  return await execute(
    db,
    `with step as (
       insert into clock_steps (seen_at, by_s)
       select now(), $1 where not exists (select from clock_steps where seen_at > $2)
       returning make_interval(secs => by_s) as by)
     update attempts set started_at = started_at + step.by, assigned_at = assigned_at + step.by,
            deadline_at = deadline_at + step.by, cancel_by = cancel_by + step.by
     from step where state = 'running' and started_at <= now() - step.by`,
    [byS, since],
  );
}
