import type { PlannedStep } from "../../core/pipelines/workflow";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { type ComparedRows, NOTHING_PENDING, type UnchangedRow } from "../temporal/compared-rows";
import type { PipelineWake } from "./due-wakes";
import type { PipelineRow } from "./pipelines";

/** A pipeline's row, as the reconciler compares it with the pipeline's workflow. */
export interface ComparedPipeline
  extends PipelineWake,
    Pick<PipelineRow, "status" | "run" | "cancel_requested_at"> {
  told: number;
  /** In topological order: each step follows the steps that it needs. */
  steps: (Pick<PlannedStep, "name" | "needs" | "choosesFrom" | "optional" | "status"> & {
    job_id: string | null;
  })[];
}

export async function findComparedPipeline(
  db: Queryable,
  pipelineId: string,
): Promise<ComparedPipeline | undefined> {
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

const IS_ACTIVE = "status in ('running', 'waiting_approval')";

/** How the reconciler compares the table with open workflows. */
export const PIPELINES: ComparedRows = {
  table: "pipelines",
  id: "pipeline_id",
  isOver: `not (${IS_ACTIVE})`,
  isUnchanged: NOTHING_PENDING,
};

/**
 * A page of active pipelines that have been unchanged for `forS` seconds, ordered by id, after `afterId`. Their
 * workflows should be open. A pipeline is due if its workflow has work to do: it was cancelled, a running step's
 * job has ended or is missing, no step is active, or a pending step has all that it needs. Usually this lasts
 * only a moment.
 */
export async function listUnchangedPipelines(
  db: Queryable,
  forS: number,
  afterId: string,
  limit: number,
): Promise<UnchangedRow[]> {
  return await all<UnchangedRow & Record<string, unknown>>(
    db,
    `select pipeline_id as id,
            cancel_requested_at is not null
            or not exists (select from pipeline_steps s where s.pipeline_id = p.pipeline_id
                           and s.status in ('running', 'waiting_approval'))
            or exists (
              select from pipeline_steps s left join jobs j using (job_id)
              where s.pipeline_id = p.pipeline_id and s.status = 'running'
                and coalesce(j.status, 'failed') in ('completed', 'failed'))
            or exists (
              select from pipeline_steps s where s.pipeline_id = p.pipeline_id and s.status = 'pending'
                and not exists (
                  select from pipeline_steps n where n.pipeline_id = s.pipeline_id
                    and n.name = any(s.needs) and n.status in ('pending', 'waiting_approval', 'running')))
            as is_due
     from pipelines p where ${IS_ACTIVE} and pipeline_id > $2 and ${NOTHING_PENDING}
     order by pipeline_id limit $3`,
    [forS, afterId, limit],
  );
}
