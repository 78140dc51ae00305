import { z } from "zod";
import { JOB_TYPES, type JobType } from "../jobs/job-types";
import type { Submission } from "../jobs/payloads";
import { OPTION_FIELDS } from "../jobs/payloads";

/** Most steps of one pipeline: its workflow's history stays far below Temporal's limits. */
export const MAX_STEPS = 500;

/** A step's name is a word of references, `${steps.<name>.result.<field>}`, so it has no dots. */
export const stepName = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9_-]{0,62}$/,
    "must be letters, digits, _ and -, beginning with a letter",
  );

export const condition = z.string().regex(/\S/, "must not be empty").max(1024);

/** Where a number stands that steps are compared by, from the roots that a gate knows. */
export const measurePath = z
  .string()
  .max(256)
  .regex(/^[A-Za-z_]\w*(\.\w+)*$/, "must be a path like scores.overall");

export const choiceSchema = z
  .strictObject({
    from: z.array(stepName).min(1).max(MAX_STEPS).describe("the steps to choose from"),
    by: measurePath.describe("what they are compared by, e.g. scores.overall"),
    order: z.enum(["highest", "lowest"]).default("highest"),
    where: condition.optional().describe("only steps of which this holds are chosen from"),
  })
  .meta({ id: "ChoiceSubmission", description: "the best of several steps" });
export type Choice = z.infer<typeof choiceSchema>;

/** One step as it is submitted: a job's payload with references, its options, and its place. */
export const stepSchema = z
  .strictObject({
    name: stepName,
    job_type: z.enum(JOB_TYPES),
    payload: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('values may be references: "${steps.<name>.result.<field>}"'),
    needs: z.array(stepName).max(MAX_STEPS).default([]).describe("beside those that it refers to"),
    choose: choiceSchema.optional().describe('its "${chosen.result.<field>}" are the best step\'s'),
    optional: z
      .boolean()
      .default(false)
      .describe("if it fails, what depends on it is left out and the pipeline goes on"),
    ...OPTION_FIELDS,
  })
  .meta({ id: "PipelineStepSubmission" });

type StepOptions = Omit<Submission, "payload">;

/** One step of a pipeline, checked: a job that is submitted once what it needs has ended. */
export interface PipelineStep {
  name: string;
  job_type: JobType;
  /** In the field names of the specification's table, references in their places. */
  payload: Record<string, unknown>;
  options: StepOptions;
  /** All of them: those that it names, refers to, and chooses from. */
  needs: string[];
  choose: Choice | null;
  optional: boolean;
  /** What must hold of its result for the pipeline to go on. */
  gate: string | null;
  needs_approval: boolean;
}

/** pending → waiting_approval? → running → completed | failed; or it is never begun. */
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
