import type { TenantScope } from "../../core/accounts/permissions";
import type { RateCard } from "../../core/billing/rate-card";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import type { PipelineDefinition } from "../../core/pipelines/definition";
import type { RunEnd } from "../../core/pipelines/run-end";
import type { PipelineStatus } from "../../core/pipelines/step";
import { listPage, type Page, Where, type WithPosition } from "../../platform/postgres/pages";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { anyContains, contains, either, startsWith } from "../../platform/postgres/text-search";
import { ALL_JOBS } from "../jobs/all-jobs";

export interface PipelineRow {
  pipeline_id: string;
  user_id: string;
  created_by: string;
  template: string | null;
  name: string | null;
  tags: string[];
  budget_usd: number | null;
  /** The cost in USD from which a warning is shown. If null, the value is 80 % of the budget. */
  warning_usd: number | null;
  reuse: boolean;
  rate_card: RateCard;
  request_id: string;
  status: PipelineStatus;
  run: number;
  error: string | null;
  error_code: string | null;
  created_at: Date;
  completed_at: Date | null;
  cancel_requested_at: Date | null;
}

export interface NewPipeline extends PipelineDefinition {
  pipelineId: string;
  userId: string;
  createdBy: string;
  rateCard: RateCard;
  requestId: string;
  /** Seconds during which only the inserting process starts the workflow. */
  leaseS: number;
}

const SHOWN_BYTES_PER_STEP = 1_000;

/**
 * Inserts the pipeline with its steps. The row is also the outbox entry that starts the workflow.
 */
export async function insertPipeline(db: Queryable, given: NewPipeline): Promise<PipelineRow> {
  const steps = given.steps.map((step, position) => ({ ...step, position }));
  const row = await maybeOne<PipelineRow>(
    db,
    `with pipeline as (
       insert into pipelines (pipeline_id, user_id, created_by, template, name, tags, budget_usd,
                              reuse, rate_card, request_id, shown_bytes, due_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $13, now() + make_interval(secs => $11))
       returning *),
     steps as (
       insert into pipeline_steps (pipeline_id, name, position, job_type, payload, options, needs,
                                   choose, optional, gate, needs_approval)
       select p.pipeline_id, s.name, s.position, s.job_type, s.payload, s.options, s.needs,
              nullif(s.choose, 'null'), s.optional, s.gate, s.needs_approval
       from pipeline p, jsonb_to_recordset($12::jsonb) as s (
         name text, position int, job_type text, payload jsonb, options jsonb, needs text[],
         choose jsonb, optional boolean, gate text, needs_approval boolean))
     select * from pipeline`,
    [
      given.pipelineId,
      given.userId,
      given.createdBy,
      given.template,
      given.name,
      given.tags,
      given.budget_usd,
      given.reuse,
      given.rateCard,
      given.requestId,
      given.leaseS,
      JSON.stringify(steps),
      SHOWN_BYTES_PER_STEP * steps.length,
    ],
  );
  if (!row) throw new Error("insert returned no pipeline");
  return row;
}

const FIND =
  "select * from pipelines where pipeline_id = $1 and ($2::text is null or user_id = $2)";

export async function findPipeline(db: Queryable, pipelineId: string, tenantScope: TenantScope) {
  return await maybeOne<PipelineRow>(db, FIND, [pipelineId, tenantScope]);
}

/** Locks the pipeline's row. Lock it before any of its steps or jobs. */
export async function lockPipeline(db: Queryable, pipelineId: string, tenantScope: TenantScope) {
  return await maybeOne<PipelineRow>(db, `${FIND} for no key update`, [pipelineId, tenantScope]);
}

/**
 * True if `run` is given and is not the pipeline's current run. Late retries of an earlier run must
 * not change the pipeline.
 */
export const isSuperseded = (
  { run }: { run?: number | undefined },
  pipeline: PipelineRow,
): boolean => run !== undefined && run !== pipeline.run;

export interface PipelineFilter {
  statuses?: PipelineStatus[] | undefined;
  tags?: string[] | undefined;
  /** A prefix of the pipeline's id, or a part of its name or of a tag. */
  text?: string | undefined;
}

/** One page of pipelines, newest first. */
export async function listPipelines(
  db: Queryable,
  tenantScope: TenantScope,
  filter: PipelineFilter,
  page: Page,
): Promise<WithPosition<PipelineRow>[]> {
  const where = new Where()
    .inTenantScope(tenantScope)
    .andIfSet(filter.statuses, (statuses) => `status = any(${statuses})`)
    .andIfSet(filter.tags, (tags) => `tags @> ${tags}::text[]`)
    .andIfSet(filter.text, (text) =>
      either(startsWith("pipeline_id", text), contains("name", text), anyContains("tags", text)),
    );
  const order: [string, string] = ["created_at", "pipeline_id"];
  const sizedBy = "shown_bytes";
  const list = { select: "*", from: "pipelines", order, where, page, sizedBy };
  return await listPage<PipelineRow>(db, list);
}

export async function requestPipelineCancel(db: Queryable, pipelineId: string): Promise<void> {
  await execute(
    db,
    `update pipelines set cancel_requested_at = coalesce(cancel_requested_at, now())
     where pipeline_id = $1`,
    [pipelineId],
  );
}

/**
 * Lists the unfinished jobs of a cancelled pipeline. Returns no jobs if the pipeline was resumed
 * after the cancel, because the pipeline's jobs then belong to the new run.
 */
export async function listJobsToCancel(db: Queryable, pipelineId: string): Promise<string[]> {
  const rows = await all<{ job_id: string }>(
    db,
    `select job_id from jobs
     where pipeline_id = $1 and status not in ('completed', 'failed')
       and exists (select from pipelines where pipeline_id = $1 and cancel_requested_at is not null)
     order by job_id`,
    [pipelineId],
  );
  return rows.map((row) => row.job_id);
}

/**
 * Ends the pipeline's current run and the steps that have not ended. This is the last write of a
 * run.
 */
export async function closeRun(db: Queryable, pipelineId: string, end: RunEnd): Promise<void> {
  const { status, error, errorCode } = end;
  await execute(
    db,
    `with closed as (
       update pipelines set status = $2, error = $3, error_code = $4, completed_at = now()
       where pipeline_id = $1 and status in ('running', 'waiting_approval') returning pipeline_id)
     update pipeline_steps s set status = $5, ended_at = now() from closed
     where s.pipeline_id = closed.pipeline_id
       and s.status in ('pending', 'waiting_approval', 'running')`,
    [pipelineId, status, error, errorCode, status === "cancelled" ? "cancelled" : "skipped"],
  );
}

export async function setPipelineBudget(
  db: Queryable,
  pipelineId: string,
  budgetUsd: number | null,
  warningUsd: number | null,
): Promise<void> {
  await execute(
    db,
    "update pipelines set budget_usd = $2, warning_usd = $3 where pipeline_id = $1",
    [pipelineId, budgetUsd, warningUsd],
  );
}

/**
 * Starts another run of the pipeline, with this budget. If the budget changes, the warning is
 * shown from 80 % of the new one.
 */
export async function openRun(
  db: Queryable,
  pipelineId: string,
  budgetUsd: number | null,
): Promise<void> {
  await execute(
    db,
    `update pipelines set status = 'running', run = run + 1, error = null, error_code = null,
            completed_at = null, cancel_requested_at = null, budget_usd = $2,
            warning_usd = case when budget_usd = $2 then warning_usd end
     where pipeline_id = $1`,
    [pipelineId, budgetUsd],
  );
}

/**
 * The cost so far of each pipeline's jobs, over all runs. A pipeline without cost has no entry.
 * Deployments are not included: they are billed on their own.
 */
export async function costsOfPipelines(
  db: Queryable,
  pipelineIds: string[],
): Promise<Map<string, number>> {
  const rows = await all<{ pipeline_id: string; cost: number }>(
    db,
    `select j.pipeline_id, sum(b.total_cost_usd) as cost
     from ${ALL_JOBS} j join billing_records b using (job_id)
     where j.pipeline_id = any($1) and j.job_type <> '${DEPLOYMENT_TYPE}' group by j.pipeline_id`,
    [pipelineIds],
  );
  return new Map(rows.map((row) => [row.pipeline_id, row.cost]));
}
