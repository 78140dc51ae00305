import type { PlannedStep } from "../../core/pipelines/workflow";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { type ComparedRows, NOTHING_PENDING } from "../temporal/compared-rows";
import type { PipelineRow } from "./pipelines";
import type { PipelineWake } from "./workflow-wakes";

/** The fields of a pipeline that the reconciler compares with its workflow. */
export interface ComparedPipeline
  extends PipelineWake,
    Pick<PipelineRow, "status" | "run" | "cancel_requested_at"> {
  told: number;
  /** In topological order: each step follows the steps that it needs. */
  steps: (Pick<PlannedStep, "name" | "needs" | "choosesFrom" | "optional" | "status"> & {
    job_id: string | null;
  })[];
}

export async function findComparedPipeline(db: Queryable, pipelineId: string) {
  return await maybeOne<ComparedPipeline>(
    db,
    `select pipeline_id, user_id, request_id, asked, told, tries, status, run, cancel_requested_at,
            (select jsonb_agg(jsonb_build_object(
                      'name', name, 'status', status, 'needs', needs, 'optional', optional,
                      'choosesFrom', coalesce(choose->'from', '[]'), 'job_id', job_id) order by position)
             from pipeline_steps s where s.pipeline_id = p.pipeline_id) as steps
     from pipelines p where pipeline_id = $1`,
    [pipelineId],
  );
}

export const PIPELINES: ComparedRows = {
  table: "pipelines",
  id: "pipeline_id",
  isLive: "status in ('running', 'waiting_approval')",
  isUnchanged: NOTHING_PENDING,
  // The workflow has work to do if the pipeline was cancelled, if no step is active, if a running
  // step's job has ended or is missing, or if all steps that a pending step needs have ended. A
  // healthy workflow acts on each of these conditions at once.
  isDue: `cancel_requested_at is not null
    or not exists (select from pipeline_steps s where s.pipeline_id = pipelines.pipeline_id
                   and s.status in ('running', 'waiting_approval'))
    or exists (
      select from pipeline_steps s left join jobs j using (job_id)
      where s.pipeline_id = pipelines.pipeline_id and s.status = 'running'
        and coalesce(j.status, 'failed') in ('completed', 'failed'))
    or exists (
      select from pipeline_steps s where s.pipeline_id = pipelines.pipeline_id and s.status = 'pending'
        and not exists (
          select from pipeline_steps n where n.pipeline_id = s.pipeline_id
            and n.name = any(s.needs) and n.status in ('pending', 'waiting_approval', 'running')))`,
};
