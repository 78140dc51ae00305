import { z } from "zod";
import { checkDatasetUri } from "../artifacts/dataset-uri";
import { InvalidRequest } from "../errors";
import { JOB_TYPES, type JobType } from "../jobs/job-types";
import { type PayloadDefaults, parseSubmission, type Submission } from "../jobs/payloads";
import { label, labels } from "../label";
import { checkCondition } from "./gate";
import { inOrder, requireStep } from "./graph";
import { mismatchOf, referencesIn, replaceReferences } from "./references";
import {
  type Choice,
  condition,
  MAX_STEPS,
  measurePath,
  type PipelineStep,
  stepName,
  stepSchema,
} from "./step";
import { type Draft, draftTemplate, TEMPLATES, type TemplateName } from "./templates";

export const gateSchema = z.strictObject({
  step: stepName,
  condition: condition.describe("e.g. scores.overall >= 0.7"),
});

/** As of a job. */
const MAX_TAGS = 32;

/** What both forms of a pipeline may carry (contract.md, Pipelines). */
const COMMON = {
  name: label(256).optional(),
  gates: z.array(gateSchema).max(MAX_STEPS).default([]).describe("what must hold to go on"),
  approvals: z
    .array(stepName)
    .max(MAX_STEPS)
    .default([])
    .describe("steps that wait for somebody's approval before they begin"),
  budget_usd: z
    .number()
    .min(0)
    .max(999_999_999_999)
    .optional()
    .describe("most that its jobs may cost"),
  reuse: z
    .boolean()
    .default(false)
    .describe("take an earlier artifact where a step would make the same from the same"),
  tags: labels(MAX_TAGS).default([]),
};

const anyBody = z.record(z.string(), z.unknown());

export const templateBody = z.strictObject({
  template: z.enum(Object.keys(TEMPLATES) as [TemplateName, ...TemplateName[]]),
  params: z
    .partialRecord(z.enum(JOB_TYPES), anyBody)
    .default({})
    .describe("by step, what its submission would carry and no earlier step makes"),
  skip: z.array(z.enum(JOB_TYPES)).max(16).default([]),
  sweep: z
    .array(anyBody)
    .min(1)
    .max(100)
    .optional()
    .describe(
      "a training for each, with these fields over those of params.train; the best goes on",
    ),
  best_by: measurePath.default("scores.overall").describe("what a sweep's best has most of"),
  ...COMMON,
});

export const stepsBody = z.strictObject({
  steps: z.array(stepSchema).min(1).max(MAX_STEPS),
  ...COMMON,
});

export interface PipelineDefinition {
  template: TemplateName | null;
  name: string | null;
  /** Each after what it needs. */
  steps: PipelineStep[];
  budget_usd: number | null;
  reuse: boolean;
  tags: string[];
}

/** What a submission's check knows of the service. */
export interface DefinitionContext extends PayloadDefaults {
  /** The directory below which file:// URIs may lie. */
  artifactsRoot: string;
}

/** How the caller turns a ZodError of a part into a refusal that names the field. */
export type Told = <T>(type: JobType, at: Draft["at"], run: () => T) => T;

/**
 * Checks a pipeline as a whole: every payload, every reference, every gate, and that steps don't wait for
 * each other. What it lets through can fail by what its jobs do, not by how it was written.
 *
 * @throws ZodError for a field of the wrong form, InvalidRequest for the rest.
 */
export function definePipeline(
  body: unknown,
  defaults: DefinitionContext,
  told: Told,
): PipelineDefinition {
  const has = (form: string): boolean => typeof body === "object" && body !== null && form in body;
  if (!has("template") && !has("steps")) {
    throw new InvalidRequest('a pipeline has a "template", or "steps" of its own', "template");
  }
  if (has("template")) {
    const given = templateBody.parse(body);
    const { sweep, best_by: by, gates } = given;
    // A sweep's evaluations are many: what its gate does not let pass is not chosen.
    const where = sweep && gates.find(({ step }) => step === "evaluate")?.condition;
    const best = { by, order: "highest" as const, ...(where === undefined ? {} : { where }) };
    const drafts = draftTemplate({ ...given, sweep, best });
    const left = where === undefined ? gates : gates.filter(({ step }) => step !== "evaluate");
    return define(given.template, drafts, { ...given, gates: left }, defaults, told);
  }
  const given = stepsBody.parse(body);
  const drafts = given.steps.map((step, index): Draft => {
    const { name, job_type, payload, needs, choose, optional, ...options } = step;
    const at = { payload: `steps.${index}.payload`, options: `steps.${index}` };
    return { name, job_type, payload, options, needs, choose: choose ?? null, optional, at };
  });
  return define(null, drafts, given, defaults, told);
}

type Common = z.output<z.ZodObject<typeof COMMON>>;

function define(
  template: TemplateName | null,
  drafts: Draft[],
  { name, gates, approvals, budget_usd, reuse, tags }: Common,
  defaults: DefinitionContext,
  told: Told,
): PipelineDefinition {
  const names = drafts.map((draft) => draft.name);
  gates.forEach(({ step, condition: text }, index) => {
    requireStep(step, names, `gates.${index}.step`);
    withParam(`gates.${index}.condition`, () => checkCondition(text));
    if (gates.findIndex((other) => other.step === step) !== index) {
      throw new InvalidRequest(`step "${step}" has two gates; join them by &&`, `gates.${index}`);
    }
  });
  for (const [index, step] of approvals.entries()) {
    requireStep(step, names, `approvals.${index}`);
  }
  const steps = drafts.map((draft): PipelineStep => {
    const submission = told(draft.job_type, draft.at, () => readDraft(draft, defaults));
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
  const ordered = inOrder(steps, (index) => rootOf(drafts[index]));
  return {
    template,
    name: name ?? null,
    steps: ordered,
    budget_usd: budget_usd ?? null,
    reuse,
    tags,
  };
}

function joinTags(ofPipeline: string[], ofStep: string[], param: string): string[] {
  const tags = [...new Set([...ofPipeline, ...ofStep])];
  if (tags.length <= MAX_TAGS) return tags;
  throw new InvalidRequest(`with the pipeline's it has over ${MAX_TAGS} tags`, param);
}

const rootOf = (draft: Draft | undefined): string => draft?.at.options ?? "steps";

/** A reference stands for a text: a dataset_uri's form is what only a real one can have. */
const PLACEHOLDER = "forge://steps/reference";

/** The submission of a step, its references in it. */
function readDraft(draft: Draft, defaults: DefinitionContext): Submission {
  const { payload, options } = draft;
  const uri = payload.dataset_uri;
  const isReference = referencesIn({ uri }).length > 0;
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

/** That each reference leads to something of the right kind. */
function checkReferences(steps: PipelineStep[], drafts: Draft[]): void {
  const byName = new Map(steps.map((step) => [step.name, step]));
  steps.forEach((step, index) => {
    const at = drafts[index]?.at ?? { payload: "", options: "" };
    const { payload, options, choose } = step;
    const from = `${at.options}.choose.from`;
    for (const name of choose?.from ?? []) requireStep(name, [...byName.keys()], from);
    const found = referencesIn({ ...payload, params: options.params });
    for (const {
      reference,
      at: [field = "", ...deeper],
    } of found) {
      const param = [field === "params" ? at.options : at.payload, field, ...deeper].join(".");
      const sources = reference.step === undefined ? (choose?.from ?? []) : [reference.step];
      if (sources.length === 0) {
        throw new InvalidRequest(`step "${step.name}" chooses from no steps`, param);
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

function withParam<T>(param: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof InvalidRequest ? new InvalidRequest(error.message, param) : error;
  }
}

/** The payload and params of a step with what earlier steps have made in place of its references. */
export function resolveStep(
  { payload, options }: Pick<PipelineStep, "payload" | "options">,
  replace: Parameters<typeof replaceReferences>[1],
): Record<string, unknown> {
  const params = replaceReferences(options.params, replace) as Record<string, unknown>;
  return { ...(replaceReferences(payload, replace) as object), ...options, params };
}
