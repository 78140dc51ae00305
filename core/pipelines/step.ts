import { z } from "zod";
import { JOB_TYPES, type JobType } from "../jobs/job-types";
import { OPTION_FIELDS, type Submission } from "../jobs/payloads";

/** Maximum steps of one pipeline. Keeps its workflow's history far below Temporal's limits. */
export const MAX_STEPS = 500;

/**
 * Contains no dots, because dots separate the parts of a reference:
 * `${steps.<name>.result.<field>}`.
 */
export const stepName = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9_-]{0,62}$/,
    "must be letters, digits, _ and -, beginning with a letter",
  );

export const condition = z.string().regex(/\S/, "must not be empty").max(1024);

/**
 * The path of the number by which steps are compared to choose the best one, e.g.
 * `scores.overall`. Begins with the name of a field of GateFacts.
 */
export const measurePath = z
  .string()
  .max(256)
  .regex(/^[A-Za-z_]\w*(\.\w+)*$/, "must be a path like scores.overall");

export const choiceSchema = z
  .strictObject({
    from: z.array(stepName).min(1).max(MAX_STEPS).describe("the steps to choose from"),
    by: measurePath.describe("the value to compare, e.g. scores.overall"),
    order: z.enum(["highest", "lowest"]).default("highest"),
    where: condition.optional().describe("choose only from steps that meet this condition"),
  })
  .meta({ id: "ChoiceSubmission", description: "the best of several steps" });
export type Choice = z.infer<typeof choiceSchema>;

/** A submitted step: a job's payload (may contain references), its options and dependencies. */
export const stepSchema = z
  .strictObject({
    name: stepName,
    job_type: z.enum(JOB_TYPES),
    payload: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('values may be references: "${steps.<name>.result.<field>}"'),
    needs: z
      .array(stepName)
      .max(MAX_STEPS)
      .default([])
      .describe("steps to wait for, besides those that the payload refers to"),
    choose: choiceSchema
      .optional()
      .describe(
        '"${chosen.result.<field>}" in this step refers to a result field of the selected step',
      ),
    optional: z
      .boolean()
      .default(false)
      .describe("true: if the step fails, dependent steps are skipped and the pipeline goes on"),
    ...OPTION_FIELDS,
  })
  .meta({ id: "PipelineStepSubmission" });

/** A validated step of a pipeline: a job that is submitted once the steps it needs have ended. */
export interface PipelineStep {
  name: string;
  job_type: JobType;
  /** Has the field names of the specification, not aliases. Its references are not resolved. */
  payload: Record<string, unknown>;
  options: Omit<Submission, "payload">;
  /**
   * All dependencies: the steps in the user's `needs`, those that `payload` refers to, and those
   * from which `choose` selects.
   */
  needs: string[];
  choose: Choice | null;
  optional: boolean;
  /** Condition on the step's result. If the condition does not hold, the step fails. */
  gate: string | null;
  needs_approval: boolean;
}

/**
 * pending → waiting_approval? → running → completed | failed | cancelled. A step that never begins
 * ends as skipped, cancelled or failed.
 */
export const STEP_STATUSES = [
  "pending",
  "waiting_approval",
  "running",
  "completed",
  "failed",
  "skipped",
  "cancelled",
] as const;
export type StepStatus = (typeof STEP_STATUSES)[number];

export const PIPELINE_STATUSES = [
  "running",
  "waiting_approval",
  "completed",
  "failed",
  "cancelled",
] as const;
export type PipelineStatus = (typeof PIPELINE_STATUSES)[number];

export const isOver = (status: PipelineStatus): boolean =>
  status !== "running" && status !== "waiting_approval";
