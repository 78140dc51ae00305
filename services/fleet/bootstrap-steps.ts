import type { BootstrapStep } from "../../core/fleet/bootstrap";
import { all, execute, type Queryable } from "../../platform/postgres/pool";

/** A step of one bootstrap run of a worker. */
export interface RunStep {
  workerId: string;
  run: number;
  step: BootstrapStep;
}

/**
 * SQL: selects worker $1 if its steps' rows belong to bootstrap run $2, and nothing if a later run
 * has begun and has reset the rows (see `beginBootstrap`). `for share` makes a later run wait until
 * the statement that uses this CTE has committed.
 */
const CURRENT = `current as (
  select worker_id from workers where worker_id = $1 and bootstrap_begun = $2 for share)`;

/** Records that a try of the step begins. Returns false if a later run has begun. */
export async function startStep(db: Queryable, { workerId, run, step }: RunStep): Promise<boolean> {
  const changed = await execute(
    db,
    `with ${CURRENT}
     update bootstrap_steps s set status = 'running', tries = tries + 1, started_at = now(),
            ended_at = null, error = null
     from current where s.worker_id = current.worker_id and s.step = $3`,
    [workerId, run, step],
  );
  return changed === 1;
}

/** Maximum length of a step's log, in characters. A longer log loses its beginning. */
const LOG_LIMIT = 65_536;

/** Appends to the step's log. Does nothing if a later run has begun. */
export async function appendStepLog(
  db: Queryable,
  { workerId, run, step }: RunStep,
  text: string,
): Promise<void> {
  await execute(
    db,
    `with ${CURRENT}
     update bootstrap_steps s set log = right(log || $4, ${LOG_LIMIT})
     from current where s.worker_id = current.worker_id and s.step = $3`,
    [workerId, run, step, text],
  );
}

/**
 * Records the step's end: a failure if `error` is given. Does nothing if a later run has begun, or
 * if the step's end has been recorded already.
 */
export async function endStep(
  db: Queryable,
  { workerId, run, step }: RunStep,
  error: string | null,
): Promise<void> {
  await execute(
    db,
    `with ${CURRENT}
     update bootstrap_steps s set error = $4, ended_at = now(),
            status = case when $4::text is null then 'completed' else 'failed' end
     from current where s.worker_id = current.worker_id and s.step = $3 and s.status = 'running'`,
    [workerId, run, step, error],
  );
}

export interface StepRow {
  step: BootstrapStep;
  status: "pending" | "running" | "completed" | "failed";
  tries: number;
  started_at: Date | null;
  ended_at: Date | null;
  log: string;
  error: string | null;
}

export async function listSteps(db: Queryable, workerId: string) {
  return await all<StepRow>(
    db,
    "select * from bootstrap_steps where worker_id = $1 order by position",
    [workerId],
  );
}
