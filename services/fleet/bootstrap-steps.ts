import type { BootstrapStep } from "../../core/fleet/bootstrap";
import { all, execute, type Queryable } from "../../platform/postgres/pool";

export async function startStep(
  db: Queryable,
  workerId: string,
  step: BootstrapStep,
): Promise<void> {
  await execute(
    db,
    `update bootstrap_steps set status = 'running', tries = tries + 1, started_at = now(),
            ended_at = null, error = null
     where worker_id = $1 and step = $2`,
    [workerId, step],
  );
}

/** Maximum length of a step's log, in characters. A longer log loses its beginning. */
const LOG_LIMIT = 65_536;

export async function appendStepLog(
  db: Queryable,
  workerId: string,
  step: BootstrapStep,
  text: string,
): Promise<void> {
  await execute(
    db,
    `update bootstrap_steps set log = right(log || $3, ${LOG_LIMIT}) where worker_id = $1 and step = $2`,
    [workerId, step, text],
  );
}

export async function endStep(
  db: Queryable,
  workerId: string,
  step: BootstrapStep,
  error: string | null,
): Promise<void> {
  await execute(
    db,
    `update bootstrap_steps set status = case when $3::text is null then 'completed' else 'failed' end,
            error = $3, ended_at = now()
     where worker_id = $1 and step = $2`,
    [workerId, step, error],
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
