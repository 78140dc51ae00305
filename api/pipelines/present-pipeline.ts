import { Decimal } from "decimal.js";
import { z } from "zod";
import { defaultWarning, judgeBudget } from "../../core/billing/budget";
import { JOB_TYPES, type JobType } from "../../core/jobs/job-types";
import { JOB_STATUSES } from "../../core/jobs/states";
import { remainingSeconds } from "../../core/pipelines/forecast";
import { choiceSchema, PIPELINE_STATUSES, STEP_STATUSES } from "../../core/pipelines/step";
import { timestamp } from "../../core/timestamp";
import type { StepRow, StepView } from "../../services/pipelines/pipeline-steps";
import type { PipelineRow } from "../../services/pipelines/pipelines";
import type { TypeHistory } from "../../services/pipelines/step-history";

const anyObject = z.record(z.string(), z.unknown());
const usd = z.number().nullable();

const gate = z.object({
  condition: z.string(),
  passed: z.boolean().nullable().describe("null until the step has completed"),
  values: anyObject.describe("the values that the condition names; null: not in the result"),
  error: z.string().optional().describe("why the gate could not be evaluated"),
});

const approval = z.object({
  approved: z.boolean().nullable().describe("null: not decided yet"),
  by: z
    .string()
    .nullable()
    .describe(
      "the name of the key that decided; `temporal` or `temporal:<name>` if the decision was sent to the workflow directly",
    ),
  at: timestamp.nullable(),
  note: z.string().nullable(),
});

const stepSchema = z
  .object({
    name: z.string(),
    job_type: z.enum(JOB_TYPES),
    status: z.enum(STEP_STATUSES),
    job_id: z.string().nullable(),
    job_status: z.enum(JOB_STATUSES).nullable(),
    progress: z.number().nullable(),
    attempts: z.int().nullable(),
    worker_id: z.string().nullable(),
    needs: z.array(z.string()),
    optional: z.boolean(),
    started_at: timestamp.nullable().describe("when the step started; its job may still wait"),
    completed_at: timestamp.nullable().describe("when the step ended, whatever its status"),
    cost_usd: usd.describe("null until the step's job is billed; a reused step costs nothing"),
    estimated_cost_usd: usd.optional().describe("median cost of recent jobs of the step's type"),
    expected_duration_s: z
      .number()
      .nullable()
      .optional()
      .describe("median duration of recent jobs of the step's type"),
    reused: z.boolean().describe("true: the step uses the artifact of an earlier job"),
    gate: gate.optional(),
    approval: approval.optional(),
    chosen: z
      .object({ step: z.string(), by: z.string(), value: z.number() })
      .nullable()
      .optional()
      .describe("the step that was best, and the value that decided"),
    error: z.string().nullable(),
    error_code: z.string().nullable(),
  })
  .meta({ id: "PipelineStep" });

const choice = z.object(choiceSchema.shape).meta({ ...choiceSchema.meta(), id: "Choice" });

const definition = z
  .object({
    steps: z.array(
      z.object({
        name: z.string(),
        job_type: z.enum(JOB_TYPES),
        payload: anyObject.describe("the payload, with unresolved references"),
        options: anyObject,
        needs: z.array(z.string()),
        optional: z.boolean(),
        choose: choice.nullable(),
      }),
    ),
  })
  .describe("the submission as Forge read it");

export const pipelineSchema = z
  .object({
    pipeline_id: z.string(),
    user_id: z.string(),
    created_by: z.string().describe("the name of the key that submitted it"),
    name: z.string().nullable(),
    template: z.string().nullable(),
    status: z.enum(PIPELINE_STATUSES),
    run: z.int().describe("1 for the first run; each resume adds 1"),
    error: z.string().nullable(),
    error_code: z.string().nullable(),
    tags: z.array(z.string()),
    reuse: z.boolean(),
    budget_usd: usd,
    budget_state: z
      .enum(["ok", "warning", "exhausted"])
      .nullable()
      .describe("state of the budget, from the cost of the pipeline's jobs; null: no budget"),
    cost_usd: z.number().describe("cost of all jobs in all runs"),
    estimated_cost_usd: usd
      .optional()
      .describe("cost so far plus the remaining steps' estimate; null if a step has no estimate"),
    expected_remaining_s: z.number().nullable().optional(),
    created_at: timestamp,
    completed_at: timestamp.nullable(),
    cancel_requested_at: timestamp.nullable(),
    steps: z.array(stepSchema),
    definition: definition.optional(),
  })
  .meta({ id: "Pipeline" });

export type Pipeline = z.infer<typeof pipelineSchema>;
type Step = z.infer<typeof stepSchema>;

/** A pipeline as in lists: without definition and forecast. */
export function presentPipeline(row: PipelineRow, steps: StepView[], costUsd: number): Pipeline {
  return {
    pipeline_id: row.pipeline_id,
    user_id: row.user_id,
    created_by: row.created_by,
    name: row.name,
    template: row.template,
    status: row.status,
    run: row.run,
    error: row.error,
    error_code: row.error_code,
    tags: row.tags,
    reuse: row.reuse,
    budget_usd: row.budget_usd,
    budget_state: stateOf(row, costUsd),
    cost_usd: costUsd,
    created_at: row.created_at.toISOString(),
    completed_at: row.completed_at?.toISOString() ?? null,
    cancel_requested_at: row.cancel_requested_at?.toISOString() ?? null,
    steps: steps.map(presentStep),
  };
}

function stateOf(
  { budget_usd: cap, warning_usd: warning }: PipelineRow,
  costUsd: number,
): Pipeline["budget_state"] {
  if (cap === null) return null;
  const bounds = { cap_usd: cap, warning_usd: warning ?? defaultWarning(cap) };
  return judgeBudget(bounds, { spent: new Decimal(costUsd), committed: new Decimal(0) });
}

/** A single pipeline, with its definition and forecast. */
export function presentPipelineDetail(
  row: PipelineRow,
  steps: StepView[],
  costUsd: number,
  history: TypeHistory[],
  submitted: Pick<StepRow, "payload" | "options">[],
): Pipeline {
  const historyOf = (step: { job_type: string }): TypeHistory | undefined =>
    history.find(({ job_type }) => job_type === step.job_type);
  const unfinished = steps.filter(({ status }) => UNFINISHED.includes(status));
  const known = unfinished.every((step) => historyOf(step));
  const expected = unfinished.reduce((sum, step) => sum + (historyOf(step)?.cost_usd ?? 0), 0);
  const pipeline = presentPipeline(row, steps, costUsd);
  return {
    ...pipeline,
    estimated_cost_usd: known ? round(costUsd + expected) : null,
    expected_remaining_s: remainingOf(steps, history),
    steps: pipeline.steps.map((step) => ({
      ...step,
      estimated_cost_usd: roundOrNull(historyOf(step)?.cost_usd),
      expected_duration_s: roundOrNull(historyOf(step)?.duration_s),
    })),
    definition: {
      steps: steps.map(({ name, job_type, needs, optional, choose }, at) => ({
        name,
        job_type,
        payload: submitted[at]?.payload ?? {},
        options: { ...submitted[at]?.options },
        needs,
        optional,
        choose,
      })),
    },
  };
}

const UNFINISHED: readonly string[] = ["pending", "waiting_approval", "running"];

const round = (value: number): number => Number(value.toFixed(6));
const roundOrNull = (value: number | undefined): number | null =>
  value === undefined ? null : round(value);

function remainingOf(steps: StepView[], history: TypeHistory[]): number | null {
  const known = steps.map((step) => ({ ...step, elapsed_s: step.job_elapsed_s }));
  const durationOf = (type: JobType) =>
    history.find(({ job_type }) => job_type === type)?.duration_s;
  const remaining = remainingSeconds(known, durationOf);
  return remaining === null ? null : round(remaining);
}

function presentStep(step: StepView): Step {
  return {
    name: step.name,
    job_type: step.job_type,
    status: step.status,
    // The step's row gets the job's id shortly before the job is inserted. Hide the id until the
    // job exists, so that a client can read the job by its id.
    job_id: step.job_status === null ? null : step.job_id,
    job_status: step.job_status,
    progress: step.job_progress,
    attempts: step.reused ? 0 : step.job_attempts,
    worker_id: step.job_worker_id,
    needs: step.needs,
    optional: step.optional,
    started_at: step.began_at?.toISOString() ?? null,
    completed_at: step.ended_at?.toISOString() ?? null,
    cost_usd: step.cost_usd,
    reused: step.reused,
    ...(step.gate === null ? {} : { gate: presentGate(step.gate, step.verdict) }),
    ...(step.needs_approval ? { approval: presentApproval(step) } : {}),
    ...(step.choose === null ? {} : { chosen: step.chosen }),
    error: step.error,
    error_code: step.error_code,
  };
}

function presentGate(condition: string, verdict: StepView["verdict"]): Step["gate"] {
  if (!verdict) return { condition, passed: null, values: {} };
  const { passed, values, error } = verdict;
  return { condition, passed, values, ...(error === undefined ? {} : { error }) };
}

const presentApproval = (step: StepView): Step["approval"] => ({
  approved: step.approved,
  by: step.decided_by,
  at: step.decided_at?.toISOString() ?? null,
  note: step.decision_note,
});
