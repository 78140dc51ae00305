import { InvalidRequest } from "../errors";
import { declarationOf, type JobType, typesWhere } from "../jobs/job-types";
import {
  REFERENCE_FIELDS,
  type ReferenceField,
  TEMPLATE_NAMES,
  type TemplateName,
} from "../jobs/types/declaration";
import type { Choice } from "./step";

/** The steps of each template, in declaration order. Each step is one job (spec.md 1.7). */
export const TEMPLATES = Object.fromEntries(
  TEMPLATE_NAMES.map((name) => [
    name,
    typesWhere(({ pipeline }) => pipeline.templates.includes(name)),
  ]),
) as Record<TemplateName, JobType[]>;

/**
 * For each entry of the request's `sweep`, a sweep runs one job of each of these types. The entry
 * overrides payload fields of the `varied` job. The `judged` job evaluates that job's result.
 */
export const SWEEP = { varied: sweepPart("varied"), judged: sweepPart("judged") };

function sweepPart(part: "varied" | "judged"): JobType {
  const [type, ...more] = typesWhere(({ pipeline }) => pipeline.sweep === part);
  if (type === undefined || more.length > 0) throw new Error(`one job type must be ${part}`);
  return type;
}

/** A step before validation. For error messages, it has the paths of its fields in the request. */
export interface Draft {
  name: string;
  job_type: JobType;
  payload: Record<string, unknown>;
  options: Record<string, unknown>;
  needs: string[];
  choose: Choice | null;
  optional: boolean;
  /** Paths of the step's payload and options in the request's body. */
  at: { payload: string; options: string };
}

interface Given {
  template: TemplateName;
  params: Partial<Record<JobType, Record<string, unknown>>>;
  skip: JobType[];
  /** Sets of fields that override `params.train`, one set for each training of the sweep. */
  sweep: Record<string, unknown>[] | undefined;
  /** How the best run of a sweep is chosen. */
  best: Pick<Choice, "by" | "order" | "where">;
}

/**
 * The steps of a template that are not skipped. A step's input refers to the nearest earlier step
 * that has a result of the input's kind.
 */
export function draftTemplate(given: Given): Draft[] {
  const { template, skip, sweep } = given;
  const steps: readonly JobType[] = TEMPLATES[template];
  requireOnly(steps, skip, (name) => `skip.${skip.indexOf(name)}`, template);
  const chain = steps.filter((type) => !skip.includes(type));
  if (chain.length === 0) throw new InvalidRequest("every step is skipped", "skip");
  requireOnly(chain, Object.keys(given.params), (name) => `params.${name}`, template);
  const missing = [SWEEP.varied, SWEEP.judged].find((type) => !chain.includes(type));
  if (sweep && missing !== undefined) {
    const message = `a sweep trains and compares by evaluation, and "${missing}" is skipped`;
    throw new InvalidRequest(message, "sweep");
  }
  return chain.flatMap((type) => {
    const inputs = inputsOf(type, chain, sweep !== undefined);
    const body = given.params[type] ?? {};
    rejectFilledFields(type, body, inputs);
    const at = `params.${type}`;
    const single: Draft = {
      name: type,
      job_type: type,
      // A template's step has the form of a job submission: payload fields and options together.
      payload: { ...body, ...inputs.fields },
      options: {},
      needs: inputs.needs,
      choose: null,
      optional: false,
      at: { payload: at, options: at },
    };
    return sweep ? swept(single, given, sweep, inputs) : [single];
  });
}

interface StepInputs {
  /** Payload fields that earlier steps fill in. */
  fields: Record<string, string>;
  needs: string[];
}

function inputsOf(type: JobType, chain: readonly JobType[], isSweep: boolean): StepInputs {
  const before = chain.slice(0, chain.indexOf(type));
  const needs = before.slice(-1);
  const { takes, sweep } = declarationOf(type).pipeline;
  const source = takes && sourceOf(takes, before);
  if (!source) return { fields: {}, needs };
  const isChosen = isSweep && sweep === "chosen";
  return { fields: { [takes]: `\${${isChosen ? `chosen.payload.${takes}` : source}}` }, needs };
}

/**
 * A reference to a result of this field's kind, from the nearest earlier step that has one;
 * undefined if no earlier step has one.
 */
function sourceOf(takes: ReferenceField, before: readonly JobType[]): string | undefined {
  for (const earlier of [...before].reverse()) {
    const { results } = declarationOf(earlier);
    const field = Object.keys(results).find((name) => results[name] === REFERENCE_FIELDS[takes]);
    if (field !== undefined) return `steps.${earlier}.result.${field}`;
  }
  return undefined;
}

/**
 * Returns the steps that replace a template's step in a sweep. They depend on the role of the
 * step's job type in sweeps:
 * - `varied` or `judged`: one step for each set of fields.
 * - `chosen`: one step, which continues with the best run.
 * - no role: the step itself.
 */
function swept(
  single: Draft,
  { best }: Given,
  sweep: Record<string, unknown>[],
  wired: StepInputs,
): Draft[] {
  const { job_type: type } = single;
  const part = declarationOf(type).pipeline.sweep;
  if (part === undefined) return [single];
  if (part === "chosen") {
    const from = sweep.map((_, index) => `${SWEEP.judged}-${index + 1}`);
    return [{ ...single, needs: [], choose: { from, ...best } }];
  }
  return sweep.map((over, index) => {
    const own = part === "varied" ? over : {};
    const at = part === "varied" ? `sweep.${index}` : `params.${type}`;
    rejectFilledFields(type, own, wired, at);
    const number = index + 1;
    const fields = Object.entries(wired.fields).map(([field, text]) => [
      field,
      text.replace(`steps.${SWEEP.varied}.`, `steps.${SWEEP.varied}-${number}.`),
    ]);
    return {
      ...single,
      name: `${type}-${number}`,
      payload: { ...single.payload, ...own, ...Object.fromEntries(fields) },
      needs: wired.needs.map((name) => (name === SWEEP.varied ? `${name}-${number}` : name)),
      optional: true,
      at: { payload: at, options: at },
    };
  });
}

function rejectFilledFields(
  type: JobType,
  body: Record<string, unknown>,
  { fields }: StepInputs,
  at = `params.${type}`,
): void {
  const taken = Object.keys(fields).flatMap((field) => [field, ...alternativesTo(field, type)]);
  const given = Object.keys(body).find((field) => taken.includes(field));
  if (given === undefined) return;
  const [from] = Object.values(fields);
  const message = `"${given}" of step "${type}" comes from the step before (${from})`;
  throw new InvalidRequest(message, `${at}.${given}`);
}

/**
 * Other payload fields that give the same input as this one: aliases, and `dataset_uri` for
 * `dataset_id`.
 */
function alternativesTo(field: string, type: JobType): string[] {
  const aliases = Object.entries(declarationOf(type).payload.aliases ?? {});
  const names = aliases.filter(([, target]) => target === field).map(([alias]) => alias);
  return field === "dataset_id" ? ["dataset_uri", ...names] : names;
}

function requireOnly(
  known: readonly string[],
  given: string[],
  param: (name: JobType) => string,
  template: string,
): void {
  const unexpected = given.find((name) => !known.includes(name));
  if (unexpected === undefined) return;
  const message = `there is no step "${unexpected}" in this ${template} pipeline; it has ${known.join(", ")}`;
  throw new InvalidRequest(message, param(unexpected as JobType));
}
