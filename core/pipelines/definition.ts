import { z } from "zod";
import { checkDatasetUri } from "../artifacts/dataset-uri";
import { InvalidRequest } from "../errors";
import { JOB_TYPES, type JobType } from "../jobs/job-types";
import { parseSubmission, type Submission } from "../jobs/payloads";
import { type PayloadDefaults, TEMPLATE_NAMES, type TemplateName } from "../jobs/types/declaration";
import { label, labels } from "../label";
import { checkGates } from "./check-gates";
import { checkCondition } from "./gate";
import { requireStep, sortSteps } from "./graph";
import { mismatchOf, referencesIn, replaceReferences, withParam } from "./references";
import {
  type Choice,
  condition,
  MAX_STEPS,
  measurePath,
  type PipelineStep,
  stepName,
  stepSchema,
} from "./step";
import { type Draft, draftTemplate, SWEEP } from "./templates";

export const gateSchema = z.strictObject({
  step: stepName,
  condition: condition.describe("e.g. scores.overall >= 0.7"),
});

/** The maximum number of a pipeline's tags: the same as for a job. */
const MAX_TAGS = 32;

/**
 * Fields that a request body may have in both of its forms: with a template, or with a list of
 * steps (contract.md, Pipelines).
 */
const COMMON = {
  name: label(256).optional(),
  gates: z.array(gateSchema).max(MAX_STEPS).default([]).describe("conditions that steps must meet"),
  approvals: z
    .array(stepName)
    .max(MAX_STEPS)
    .default([])
    .describe("steps that wait for an approval before they start"),
  budget_usd: z
    .number()
    .min(0)
    .max(999_999_999_999)
    .optional()
    .describe("the most that the pipeline's jobs may cost"),
  reuse: z
    .boolean()
    .default(false)
    .describe("use an existing artifact if a step would make the same one from the same inputs"),
  tags: labels(MAX_TAGS).default([]),
};

const anyBody = z.record(z.string(), z.unknown());

export const templateBody = z.strictObject({
  template: z.enum(TEMPLATE_NAMES),
  params: z
    .partialRecord(z.enum(JOB_TYPES), anyBody)
    .default({})
    .describe("for each step: its options, and the payload fields that no earlier step provides"),
  skip: z.array(z.enum(JOB_TYPES)).max(16).default([]),
  sweep: z
    .array(anyBody)
    .min(1)
    .max(100)
    .optional()
    .describe(
      "one training for each entry, whose fields override params.train; the best one is used",
    ),
  best_by: measurePath
    .default("scores.overall")
    .describe(
      "path of the number by which a sweep's trainings are compared; the highest is the best",
    ),
  ...COMMON,
});

export const stepsBody = z.strictObject({
  steps: z.array(stepSchema).min(1).max(MAX_STEPS),
  ...COMMON,
});

export interface PipelineDefinition {
  template: TemplateName | null;
  name: string | null;
  /** In topological order: each step after the steps it needs. */
  steps: PipelineStep[];
  budget_usd: number | null;
  reuse: boolean;
  tags: string[];
}

/** Settings of the service that validation needs. */
export interface DefinitionContext extends PayloadDefaults {
  /** file:// URIs must be below this directory. */
  artifactsRoot: string;
}

/**
 * Calls `run`, which validates one step. If `run` rejects a field, throws an error that names the
 * field by its path in the request.
 */
export type LocateErrors = <T>(type: JobType, at: Draft["at"], run: () => T) => T;

/**
 * Validates a whole pipeline: everything that can be known before its jobs run.
 * @throws ZodError for a malformed field, InvalidRequest for everything else.
 */
export function definePipeline(
  body: unknown,
  defaults: DefinitionContext,
  locateErrors: LocateErrors,
): PipelineDefinition {
  const has = (form: string): boolean => typeof body === "object" && body !== null && form in body;
  if (!has("template") && !has("steps")) {
    throw new InvalidRequest('a pipeline needs "template" or "steps"', "template");
  }
  if (has("template")) {
    const given = templateBody.parse(body);
    const { sweep, best_by: by, gates } = given;
    // In a sweep, each training has its own evaluation step. An evaluation that does not meet the
    // condition of a gate does not fail. Instead, its training can't be chosen: the condition
    // becomes the filter `where`.
    const where = sweep && gates.find(({ step }) => step === SWEEP.judged)?.condition;
    const best = { by, order: "highest" as const, ...(where === undefined ? {} : { where }) };
    const drafts = draftTemplate({ ...given, sweep, best });
    return define(given.template, drafts, given, defaults, locateErrors);
  }
  const given = stepsBody.parse(body);
  const drafts = given.steps.map((step, index): Draft => {
    const { name, job_type, payload, needs, choose, optional, ...options } = step;
    const at = { payload: `steps.${index}.payload`, options: `steps.${index}` };
    return { name, job_type, payload, options, needs, choose: choose ?? null, optional, at };
  });
  return define(null, drafts, given, defaults, locateErrors);
}

type Common = z.output<z.ZodObject<typeof COMMON>>;

function define(
  template: TemplateName | null,
  drafts: Draft[],
  { name, gates, approvals, budget_usd, reuse, tags }: Common,
  defaults: DefinitionContext,
  locateErrors: LocateErrors,
): PipelineDefinition {
  const names = drafts.map((draft) => draft.name);
  // In a sweep, a gate may name the job type SWEEP.judged. No step has this name, because the steps
  // are numbered, so accept the name here. The gate's condition is already in `choose.where`.
  const hasSweepGate =
    template !== null && drafts.some(({ choose }) => choose?.where !== undefined);
  checkGates(gates, hasSweepGate ? [...names, SWEEP.judged] : names);
  for (const [index, step] of approvals.entries()) {
    requireStep(step, names, `approvals.${index}`);
  }
  const steps = drafts.map((draft): PipelineStep => {
    const submission = locateErrors(draft.job_type, draft.at, () => readDraft(draft, defaults));
    const { payload, ...options } = submission;
    return {
      name: draft.name,
      job_type: draft.job_type,
      payload,
      options: { ...options, tags: joinTags(tags, options.tags, `${draft.at.options}.tags`) },
      needs: needsOf(draft, submission),
      choose: checkChoice(draft),
      optional: draft.optional,
      gate: gates.find(({ step }) => step === draft.name)?.condition ?? null,
      needs_approval: approvals.includes(draft.name),
    };
  });
  checkReferences(steps, drafts);
  return {
    template,
    name: name ?? null,
    steps: sortSteps(steps, (index) => drafts[index]?.at.options ?? "steps"),
    budget_usd: budget_usd ?? null,
    reuse,
    tags,
  };
}

function joinTags(ofPipeline: string[], ofStep: string[], param: string): string[] {
  const tags = [...new Set([...ofPipeline, ...ofStep])];
  if (tags.length <= MAX_TAGS) return tags;
  throw new InvalidRequest(`the step and its pipeline together have over ${MAX_TAGS} tags`, param);
}

/** Stands for a reference during validation, because a reference is not a valid dataset_uri. */
const PLACEHOLDER = "forge://steps/reference";

/** The validated submission of a step, with unresolved references. */
function readDraft(draft: Draft, defaults: DefinitionContext): Submission {
  const { payload, options } = draft;
  const uri = payload.dataset_uri;
  const isReference = referencesIn({ dataset_uri: uri }).length > 0;
  const body = { ...options, ...payload, ...(isReference ? { dataset_uri: PLACEHOLDER } : {}) };
  const submission = parseSubmission(draft.job_type, body, defaults);
  if (isReference) submission.payload.dataset_uri = uri;
  else if (typeof uri === "string") checkDatasetUri(uri, defaults.artifactsRoot);
  referencesIn({ ...submission.payload, params: submission.params });
  return submission;
}

function needsOf({ needs, choose }: Draft, { payload, params }: Submission): string[] {
  const referred = referencesIn({ ...payload, params }).flatMap(({ reference }) =>
    reference.step === undefined ? [] : [reference.step],
  );
  return [...new Set([...needs, ...referred, ...(choose?.from ?? [])])];
}

function checkChoice({ choose, at }: Draft): Choice | null {
  const where = choose?.where;
  if (where !== undefined) withParam(`${at.options}.choose.where`, () => checkCondition(where));
  return choose;
}

function checkReferences(steps: PipelineStep[], drafts: Draft[]): void {
  const byName = new Map(steps.map((step) => [step.name, step]));
  steps.forEach((step, index) => {
    const at = drafts[index]?.at ?? { payload: "", options: "" };
    const { payload, options, choose } = step;
    const from = `${at.options}.choose.from`;
    for (const name of choose?.from ?? []) requireStep(name, [...byName.keys()], from);
    for (const { reference, at: path } of referencesIn({ ...payload, params: options.params })) {
      const [field = ""] = path;
      const param = [field === "params" ? at.options : at.payload, ...path].join(".");
      const sources = reference.step === undefined ? (choose?.from ?? []) : [reference.step];
      if (sources.length === 0) {
        const message = `step "${step.name}" refers to the chosen step, but has no "choose"`;
        throw new InvalidRequest(message, param);
      }
      for (const name of sources) {
        requireStep(name, [...byName.keys()], reference.step === undefined ? from : param);
        const source = byName.get(name);
        const fault = source && mismatchOf(field, reference, source);
        if (fault !== undefined) throw new InvalidRequest(fault, param);
      }
    }
  });
}

/** The payload, params and options of a step, with its references replaced. */
export function resolveStep(
  { payload, options }: Pick<PipelineStep, "payload" | "options">,
  replace: Parameters<typeof replaceReferences>[1],
): Record<string, unknown> {
  const params = replaceReferences(options.params, replace) as Record<string, unknown>;
  return { ...(replaceReferences(payload, replace) as object), ...options, params };
}
