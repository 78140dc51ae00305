import type { Submission } from "../../core/jobs/payloads";
import type { JobStatus } from "../../core/jobs/states";
import type { Verdict } from "../../core/pipelines/gate";
import type { PipelineStep, StepStatus } from "../../core/pipelines/step";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ARTIFACTS } from "../artifacts/artifacts";
import { ALL_ATTEMPTS, ALL_JOBS } from "../jobs/all-jobs";
import type { JobWarning } from "../jobs/jobs";

/** A step and its state, without payload and options, which may be large. */
export interface StepView extends Omit<PipelineStep, "payload" | "options"> {
  pipeline_id: string;
  position: number;
  status: StepStatus;
  run: number;
  job_id: string | null;
  reused: boolean;
  chosen: { step: string; by: string; value: number } | null;
  verdict: (Verdict & { condition: string }) | null;
  approved: boolean | null;
  decided_by: string | null;
  decided_at: Date | null;
  decision_note: string | null;
  error: string | null;
  error_code: string | null;
  began_at: Date | null;
  ended_at: Date | null;
  // From here on, values of the step's job. Those that can be null are null while there is no job.
  job_status: JobStatus | null;
  job_progress: number | null;
  job_attempts: number | null;
  job_worker_id: string | null;
  /** Seconds from the job's start to now, or to its end. 0 if no job has started. */
  job_elapsed_s: number;
  job_error: string | null;
  cost_usd: number | null;
}

/** A step with all its columns. */
export interface StepRow extends StepView, Pick<PipelineStep, "payload" | "options"> {
  submission: Submission | null;
  warnings: JobWarning[];
  reuse_key: string | null;
  /** The step must run again and may not reuse an earlier artifact. */
  is_fresh: boolean;
  expected_cost_usd: number | null;
}

const STEP = `s.pipeline_id, s.name, s.position, s.job_type, s.needs, s.choose, s.optional, s.gate,
  s.needs_approval, s.status, s.run, s.job_id, s.reused, s.chosen, s.verdict, s.approved, s.decided_by,
  s.decided_at, s.decision_note, s.error, s.error_code, s.began_at, s.ended_at`;

const JOB_COLUMNS = `j.status as job_status, j.progress as job_progress, j.attempts as job_attempts,
  j.worker_id as job_worker_id, j.error as job_error,
  greatest(0, extract(epoch from coalesce(j.completed_at, now()) - j.started_at))::float8 as job_elapsed_s,
  case when s.reused then 0 else b.total_cost_usd end as cost_usd
  from pipeline_steps s left join ${ALL_JOBS} j using (job_id)
  left join billing_records b on b.job_id = s.job_id`;

/** The steps of these pipelines, ordered by pipeline and position. */
export async function listSteps(db: Queryable, pipelineIds: string[]) {
  return await all<StepView>(
    db,
    `select ${STEP}, ${JOB_COLUMNS}
     where s.pipeline_id = any($1) order by s.pipeline_id, s.position`,
    [pipelineIds],
  );
}

/**
 * The steps of a pipeline in topological order. `choosesFrom` names the steps among which a step
 * chooses the best.
 */
export async function listPlannedSteps(db: Queryable, pipelineId: string) {
  const steps = await listSteps(db, [pipelineId]);
  return steps.map((step) => ({ ...step, choosesFrom: step.choose?.from ?? [] }));
}

export async function findStep(db: Queryable, pipelineId: string, name: string) {
  return await maybeOne<StepRow>(
    db,
    `select s.*, ${JOB_COLUMNS} where s.pipeline_id = $1 and s.name = $2`,
    [pipelineId, name],
  );
}

/** The submitted payload and options of each step, in order of position. */
export async function listSubmitted(db: Queryable, pipelineId: string) {
  return await all<Pick<PipelineStep, "payload" | "options">>(
    db,
    "select payload, options from pipeline_steps where pipeline_id = $1 order by position",
    [pipelineId],
  );
}

/** The values of a step's job that other steps and gates may refer to. */
export interface StepResult {
  name: string;
  status: StepStatus;
  payload: Record<string, unknown> | null;
  result: Record<string, unknown> | null;
  artifacts_uri: string | null;
  /**
   * Usage and reported metrics of the winning attempt. If both have a field, the usage takes
   * precedence.
   */
  metrics: Record<string, unknown>;
}

/** Reads only the named steps, because a result may be large. */
export async function listResults(db: Queryable, pipelineId: string, names: string[]) {
  return await all<StepResult>(
    db,
    `select s.name, s.status, j.payload, j.result, j.artifacts_uri,
            coalesce(won.metrics, '{}') || coalesce(won.usage, '{}') as metrics
     from pipeline_steps s left join ${ALL_JOBS} j using (job_id)
     left join ${ALL_ATTEMPTS} won on won.job_id = j.job_id and won.outcome = 'completed'
     where s.pipeline_id = $1 and s.name = any($2)`,
    [pipelineId, names],
  );
}

/**
 * The step for which this job was or will be created. Ignores steps that reuse the job's artifact.
 */
export async function findStepOfJob(db: Queryable, jobId: string) {
  return await maybeOne<StepRow>(
    db,
    `select s.*, ${JOB_COLUMNS} where s.job_id = $1 and not s.reused`,
    [jobId],
  );
}

/** The total stored size of the column `submission` of a pipeline's steps, in bytes. */
export async function sizeOfSubmissions(db: Queryable, pipelineId: string): Promise<number> {
  const row = await maybeOne<{ bytes: number }>(
    db,
    `select coalesce(sum(pg_column_size(submission)), 0) as bytes
     from pipeline_steps where pipeline_id = $1`,
    [pipelineId],
  );
  return row?.bytes ?? 0;
}

/**
 * Returns the steps on which this step depends, directly or indirectly, and that reused the
 * artifact of an earlier job.
 */
export async function listReusedBefore(db: Queryable, pipelineId: string, name: string) {
  return await all<{ step: string; job_id: string; artifact_id: string }>(
    db,
    `with recursive needed (name) as (
       select unnest(needs) from pipeline_steps where pipeline_id = $1 and name = $2
       union
       select unnest(s.needs) from needed join pipeline_steps s using (name) where s.pipeline_id = $1)
     select s.name as step, s.job_id, a.artifact_id
     from needed join pipeline_steps s using (name) join ${ARTIFACTS} a using (job_id)
     where s.pipeline_id = $1 and s.reused order by s.position`,
    [pipelineId, name],
  );
}
