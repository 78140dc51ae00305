import type { TenantScope } from "../../core/accounts/permissions";
import { NotFound } from "../../core/errors";
import type { Queryable } from "../../platform/postgres/pool";
import type { Context } from "../../services/context";
import { listSteps, listSubmitted } from "../../services/pipelines/pipeline-steps";
import {
  costsOfPipelines,
  findPipeline,
  type PipelineRow,
} from "../../services/pipelines/pipelines";
import { readHistory } from "../../services/pipelines/step-history";
import { type Pipeline, presentPipelineDetail } from "./present-pipeline";

export async function requirePipeline(
  db: Queryable,
  id: string,
  tenantScope: TenantScope,
): Promise<PipelineRow> {
  const row = await findPipeline(db, id, tenantScope);
  if (!row) throw new NotFound("pipeline", id);
  return row;
}

/** Reads a pipeline and presents it in full. @throws 404 */
export async function show(
  { pool }: Context,
  id: string,
  tenantScope: TenantScope,
): Promise<Pipeline> {
  return await showPipeline(pool, await requirePipeline(pool, id, tenantScope));
}

/** Presents a pipeline with its definition, costs and forecast. */
export async function showPipeline(db: Queryable, row: PipelineRow): Promise<Pipeline> {
  const { pipeline_id: id, user_id: userId } = row;
  const steps = await listSteps(db, [id]);
  const costs = await costsOfPipelines(db, [id]);
  const types = steps.map(({ job_type }) => job_type);
  const history = await readHistory(db, userId, types);
  return presentPipelineDetail(
    row,
    steps,
    costs.get(id) ?? 0,
    history,
    await listSubmitted(db, id),
  );
}
