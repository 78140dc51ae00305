import type { Submission } from "../../core/jobs/payloads";
import { execute, type Queryable } from "../../platform/postgres/pool";
import type { JobWarning } from "../jobs/jobs";
import type { StepView } from "./pipeline-steps";

/** Sets a step, and its pipeline, to `waiting_approval`. The caller holds the pipeline's lock. */
export async function waitForApproval(
  db: Queryable,
  pipelineId: string,
  name: string,
): Promise<void> {
  await execute(
    db,
    `with step as (
       update pipeline_steps set status = 'waiting_approval'
       where pipeline_id = $1 and name = $2 and status = 'pending' and approved is null
       returning pipeline_id)
     update pipelines p set status = 'waiting_approval' from step
     where p.pipeline_id = step.pipeline_id and p.status = 'running'`,
    [pipelineId, name],
  );
}

export interface Decision {
  approved: boolean;
  by: string;
  note: string | null;
}

/**
 * Approves or rejects a waiting step. An approved step becomes `pending`, a rejected one `failed`.
 *
 * @returns false if the step is not waiting.
 */
export async function decideStep(
  db: Queryable,
  pipelineId: string,
  name: string,
  { approved, by, note }: Decision,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update pipeline_steps set approved = $3, decided_by = $4, decided_at = now(),
            decision_note = $5,
            status = case when $3 then 'pending' else 'failed' end,
            ended_at = case when $3 then null else now() end,
            error_code = case when $3 then null else 'approval_rejected' end,
            error = case when $3 then null else 'rejected by ' || $4 || coalesce(': ' || $5, '') end
     where pipeline_id = $1 and name = $2 and status = 'waiting_approval'`,
    [pipelineId, name, approved, by, note],
  );
  if (changed === 0) return false;
  await execute(
    db,
    `update pipelines set status = 'running'
     where pipeline_id = $1 and status = 'waiting_approval'
       and not exists (select from pipeline_steps
                       where pipeline_id = $1 and status = 'waiting_approval')`,
    [pipelineId],
  );
  return true;
}

export interface StepStart {
  jobId: string;
  submission: Submission;
  warnings: JobWarning[];
  reuseKey: string | null;
  reused: boolean;
  chosen: StepView["chosen"];
  /** In USD; null if there is no budget. */
  expectedCostUsd: number | null;
}

/**
 * Sets a pending step to `running` and stores the id of its job. This is either a new job, or the
 * earlier job whose artifact the step reuses. The caller holds the pipeline's lock and has checked
 * that the pipeline is active and that no later run has begun.
 *
 * @returns false if the step is not pending, or already has a job.
 */
export async function beginStep(
  db: Queryable,
  pipelineId: string,
  name: string,
  given: StepStart,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update pipeline_steps set status = 'running', began_at = now(), job_id = $3, submission = $4,
            warnings = $5, reuse_key = $6, reused = $7, chosen = $8,
            expected_cost_usd = $9
     where pipeline_id = $1 and name = $2 and status = 'pending' and job_id is null`,
    [
      pipelineId,
      name,
      given.jobId,
      given.submission,
      JSON.stringify(given.warnings),
      given.reuseKey,
      given.reused,
      given.chosen,
      given.expectedCostUsd,
    ],
  );
  return changed === 1;
}

export interface StepEnding {
  status: "completed" | "failed" | "cancelled";
  error?: string | null;
  errorCode?: string | null;
  verdict?: StepView["verdict"];
}

/** Ends a running step that was begun with this job. Idempotent. */
export async function endStep(
  db: Queryable,
  { pipeline_id, name, job_id }: Pick<StepView, "pipeline_id" | "name" | "job_id">,
  { status, error, errorCode, verdict }: StepEnding,
): Promise<void> {
  await execute(
    db,
    `update pipeline_steps set status = $4, error = $5, error_code = $6, verdict = $7,
            ended_at = now()
     where pipeline_id = $1 and name = $2 and job_id = $3 and status = 'running'`,
    [pipeline_id, name, job_id, status, error ?? null, errorCode ?? null, verdict ?? null],
  );
}

/** Fails a pending step that can't begin. The caller holds the pipeline's lock. */
export async function failStep(
  db: Queryable,
  pipelineId: string,
  name: string,
  error: string,
  errorCode: string,
): Promise<void> {
  await execute(
    db,
    `update pipeline_steps set status = 'failed', error = $3, error_code = $4, ended_at = now()
     where pipeline_id = $1 and name = $2 and status = 'pending' and job_id is null`,
    [pipelineId, name, error, errorCode],
  );
}

/**
 * Resets steps, so that the pipeline's next run does them again.
 *
 * @param fresh the steps among `names` that may not reuse earlier artifacts, in this run and in
 *   later ones.
 */
export async function resetSteps(
  db: Queryable,
  pipelineId: string,
  names: string[],
  fresh: string[],
): Promise<void> {
  await execute(
    db,
    `update pipeline_steps s set status = 'pending', run = p.run, submission = null,
            warnings = '[]', job_id = null, reused = false, reuse_key = null, chosen = null,
            verdict = null, approved = null, decided_by = null, decided_at = null,
            decision_note = null, error = null, error_code = null, began_at = null, ended_at = null,
            is_fresh = s.is_fresh or s.name = any($3)
     from pipelines p
     where s.pipeline_id = $1 and p.pipeline_id = s.pipeline_id and s.name = any($2)`,
    [pipelineId, names, fresh],
  );
}

/**
 * Replaces the outcome of a step whose gate was replaced after its end. The step keeps its job and
 * the time of its end.
 */
export async function replaceEnding(
  db: Queryable,
  pipelineId: string,
  name: string,
  { status, error, errorCode, verdict }: StepEnding,
): Promise<void> {
  await execute(
    db,
    `update pipeline_steps set status = $3, error = $4, error_code = $5, verdict = $6
     where pipeline_id = $1 and name = $2`,
    [pipelineId, name, status, error ?? null, errorCode ?? null, verdict ?? null],
  );
}

export async function replaceGate(
  db: Queryable,
  pipelineId: string,
  name: string,
  condition: string,
): Promise<void> {
  await execute(db, "update pipeline_steps set gate = $3 where pipeline_id = $1 and name = $2", [
    pipelineId,
    name,
    condition,
  ]);
}

/** Replaces the condition that a candidate must meet before the step may choose it. */
export async function replaceChoiceCondition(
  db: Queryable,
  pipelineId: string,
  name: string,
  condition: string,
): Promise<void> {
  await execute(
    db,
    `update pipeline_steps set choose = jsonb_set(choose, '{where}', to_jsonb($3::text))
     where pipeline_id = $1 and name = $2`,
    [pipelineId, name, condition],
  );
}
