import { InvalidRequest } from "../errors";
import type { JobType } from "../jobs/job-types";
import type { Choice } from "./step";

/** spec.md 1.7: each step is one job. */
export const TEMPLATES = {
  "byo-data": ["audit", "distill", "train", "evaluate", "deploy"],
  synthetic: ["generate", "audit", "distill", "train", "evaluate", "deploy"],
} as const satisfies Record<string, readonly JobType[]>;
export type TemplateName = keyof typeof TEMPLATES;

/** A step before it is checked: what was given, and where, for what is said of it. */
export interface Draft {
  name: string;
  job_type: JobType;
  payload: Record<string, unknown>;
  options: Record<string, unknown>;
  needs: string[];
  choose: Choice | null;
  optional: boolean;
  /** The path of its payload in the request's body, and that of its options. */
  at: { payload: string; options: string };
}

interface Given {
  template: TemplateName;
  params: Partial<Record<JobType, Record<string, unknown>>>;
  skip: JobType[];
  /** Fields over those of `params.train`, a set for each training of the sweep. */
  sweep: Record<string, unknown>[] | undefined;
  /** How the best of a sweep is chosen. */
  best: Pick<Choice, "by" | "order" | "where">;
}

/** Which result field of a step names the dataset that the next one works on. */
const DATASET_FIELD: Partial<Record<JobType, string>> = {
  generate: "dataset_id",
  audit: "dataset_id",
  distill: "distilled_dataset_id",
};

/** The steps of a template, each wired to the one before that makes what it takes. */
export function draftTemplate(given: Given): Draft[] {
  const { template, skip, sweep } = given;
  const steps: readonly JobType[] = TEMPLATES[template];
  requireOnly(steps, skip, (name) => `skip.${skip.indexOf(name)}`, template);
  const chain = steps.filter((type) => !skip.includes(type));
  if (chain.length === 0) throw new InvalidRequest("every step is skipped", "skip");
  requireOnly(chain, Object.keys(given.params), (name) => `params.${name}`, template);
  const missing = ["train", "evaluate"].find((name) => !(chain as string[]).includes(name));
  if (sweep && missing !== undefined) {
    const message = `a sweep trains and compares by evaluation, and "${missing}" is skipped`;
    throw new InvalidRequest(message, "sweep");
  }
  return chain.flatMap((type) => {
    const wired = wiringOf(type, chain, sweep !== undefined);
    const body = given.params[type] ?? {};
    refuseWired(type, body, wired);
    if (!sweep) return [draft(type, type, { ...body, ...wired.fields }, wired.needs)];
    return swept(type, body, given, sweep, wired);
  });
}

interface Wiring {
  /** Payload fields that earlier steps fill in. */
  fields: Record<string, string>;
  needs: string[];
}

/** What a step takes from those before it. */
function wiringOf(type: JobType, chain: readonly JobType[], isSweep: boolean): Wiring {
  const before = chain.slice(0, chain.indexOf(type));
  const needs = before.slice(-1);
  const source = [...before].reverse().find((earlier) => earlier in DATASET_FIELD);
  switch (type) {
    case "generate":
      return { fields: {}, needs };
    case "audit":
      return {
        fields: source ? { dataset_uri: `\${steps.${source}.result.dataset_uri}` } : {},
        needs,
      };
    case "distill":
    case "train":
      return {
        fields: source ? { dataset_id: `\${steps.${source}.result.${DATASET_FIELD[source]}}` } : {},
        needs,
      };
    case "evaluate":
    case "deploy": {
      const best = isSweep && type === "deploy";
      const checkpoint = best ? "chosen.payload.checkpoint_id" : "steps.train.result.checkpoint_id";
      return {
        fields: before.includes("train") ? { checkpoint_id: `\${${checkpoint}}` } : {},
        needs,
      };
    }
  }
}

/** A sweep's steps: training and evaluation once for each set of fields, then the best is deployed. */
function swept(
  type: JobType,
  body: Record<string, unknown>,
  { best }: Given,
  sweep: Record<string, unknown>[],
  wired: Wiring,
): Draft[] {
  if (type === "deploy") {
    const from = sweep.map((_, index) => `evaluate-${index + 1}`);
    return [{ ...draft(type, type, { ...body, ...wired.fields }, []), choose: { from, ...best } }];
  }
  if (type !== "train" && type !== "evaluate") {
    return [draft(type, type, { ...body, ...wired.fields }, wired.needs)];
  }
  return sweep.map((over, index) => {
    const own = type === "train" ? over : {};
    const at = type === "train" ? `sweep.${index}` : `params.${type}`;
    refuseWired(type, own, wired, at);
    const numbered = (text: string): string => text.replace(/\btrain\b/, `train-${index + 1}`);
    const fields = Object.entries(wired.fields).map(([field, text]) => [field, numbered(text)]);
    const content = { ...body, ...own, ...Object.fromEntries(fields) };
    const drafted = draft(`${type}-${index + 1}`, type, content, wired.needs.map(numbered));
    return { ...drafted, optional: true, at: { payload: at, options: at } };
  });
}

function draft(name: string, type: JobType, body: Record<string, unknown>, needs: string[]): Draft {
  const at = `params.${type}`;
  return {
    name,
    job_type: type,
    // A template's step is given as a job's submission is: payload and options side by side.
    payload: body,
    options: {},
    needs,
    choose: null,
    optional: false,
    at: { payload: at, options: at },
  };
}

function refuseWired(
  type: JobType,
  body: Record<string, unknown>,
  { fields }: Wiring,
  at = `params.${type}`,
): void {
  const taken = Object.keys(fields).flatMap((field) => ALSO[field] ?? [field]);
  const given = Object.keys(body).find((field) => taken.includes(field));
  if (given === undefined) return;
  const [from] = Object.values(fields);
  const message = `"${given}" of step "${type}" comes from the step before (${from})`;
  throw new InvalidRequest(message, `${at}.${given}`);
}

/** Other names under which a payload may give what an earlier step fills in. */
const ALSO: Record<string, string[]> = {
  dataset_id: ["dataset_id", "dataset_uri"],
  checkpoint_id: ["checkpoint_id", "model_id"],
};

function requireOnly(
  known: readonly string[],
  given: string[],
  param: (name: JobType) => string,
  template: string,
): void {
  const odd = given.find((name) => !known.includes(name));
  if (odd === undefined) return;
  const message = `there is no step "${odd}" in this ${template} pipeline; it has ${known.join(", ")}`;
  throw new InvalidRequest(message, param(odd as JobType));
}
