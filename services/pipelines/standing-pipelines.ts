import type { PlannedStep } from "../../core/pipelines/workflow";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { type ComparedRows, OWES_NOTHING, type Standing } from "../temporal/standing";
import type { OwedPipeline, PipelineRow } from "./pipelines";

/** A pipeline as it is compared with its workflow, which may have to be started again. */
export interface ComparedPipeline
  extends OwedPipeline,
    Pick<PipelineRow, "status" | "run" | "cancel_requested_at"> {
  told: number;
  /** Each after what it needs. */
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

const UNDER_WAY = "status in ('running', 'waiting_approval')";

/** As they are compared with open workflows. */
export const PIPELINES: ComparedRows = {
  table: "pipelines",
  id: "pipeline_id",
  isOver: `not (${UNDER_WAY})`,
  stands: OWES_NOTHING,
};

/**
 * A page of those under way that stand, by id, after `afterId`: their workflows should be open. Due are those of
 * which a step's job is over or not there, no step is under way, or a step has all that it needs: mostly for a
 * moment only.
 */
export async function listStandingPipelines(
  db: Queryable,
  forS: number,
  afterId: string,
  limit: number,
): Promise<Standing[]> {
  return await all<Standing & Record<string, unknown>>(
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
     from pipelines p where ${UNDER_WAY} and pipeline_id > $2 and ${OWES_NOTHING}
     order by pipeline_id limit $3`,
    [forS, afterId, limit],
  );
}
