import type { PipelineSubmission } from "@forge/sdk";
import type { JobType } from "../../jobs/declared-types";
import { SWEEP, TEMPLATE_STEPS } from "../../jobs/declared-types";
import { type Body, readFields } from "../../submit/form-values";
import { commaSeparated } from "../../ui/format";
import type { TemplateName } from "../search";
import { fieldsToFill, inputsFromSteps, STEP_OPTIONS } from "./templates";

export interface StepDraft {
  isIncluded: boolean;
  /** Index in `formsOf(type)`: which of the alternative sets of payload fields is chosen. */
  form: number;
  /** The text of the fields, by name. */
  values: Readonly<Record<string, string>>;
  gate: string;
  needsApproval: boolean;
}

/** The form's content. All templates share it, so input is kept when the template changes. */
export interface Draft {
  name: string;
  tags: string;
  budget: string;
  reuse: boolean;
  /** Each line is a JSON object with the fields of one training. */
  sweep: string;
  steps: Readonly<Record<string, StepDraft>>;
}

const EMPTY_STEP: StepDraft = {
  isIncluded: true,
  form: 0,
  values: {},
  gate: "",
  needsApproval: false,
};

export const EMPTY_DRAFT: Draft = {
  name: "",
  tags: "",
  budget: "",
  reuse: false,
  sweep: "",
  steps: {},
};

export const stepOf = ({ steps }: Draft, type: JobType): StepDraft => steps[type] ?? EMPTY_STEP;

export const includedSteps = (template: TemplateName, draft: Draft): JobType[] =>
  TEMPLATE_STEPS[template].filter((type) => stepOf(draft, type).isIncluded);

export type TemplateBody = Extract<PipelineSubmission, { template: unknown }>;

export interface ReadDraft {
  /** The request body, without the invalid fields. */
  body: TemplateBody;
  /** Error messages by the field's path in the form: `params.train.model`, `gate.train`, … */
  problems: Readonly<Record<string, string>>;
}

/** Converts the form to a submission. The server validates everything again. */
export function readDraft(template: TemplateName, draft: Draft): ReadDraft {
  const problems: Record<string, string> = {};
  const included = includedSteps(template, draft);
  const params: Record<string, Body> = {};
  for (const type of included) {
    const body = readStep(type, draft, included, problems);
    if (Object.keys(body).length > 0) params[type] = body;
  }
  const skip = TEMPLATE_STEPS[template].filter((type) => !included.includes(type));
  const gates = included.flatMap((step) => {
    const condition = stepOf(draft, step).gate.trim();
    return condition ? [{ step, condition }] : [];
  });
  const approvals = included.filter((type) => stepOf(draft, type).needsApproval);
  const tags = commaSeparated(draft.tags);
  const sweep = included.includes(SWEEP.varied) ? readSweep(draft.sweep, problems) : [];
  const budget = draft.budget.trim();
  if (budget !== "" && !(Number(budget) >= 0)) problems.budget_usd = "This must be a number.";
  const body: TemplateBody = {
    template,
    ...(draft.name.trim() ? { name: draft.name.trim() } : {}),
    params,
    ...(skip.length > 0 ? { skip } : {}),
    ...(sweep.length > 0 ? { sweep } : {}),
    ...(gates.length > 0 ? { gates } : {}),
    ...(approvals.length > 0 ? { approvals } : {}),
    ...(budget !== "" && !problems.budget_usd ? { budget_usd: Number(budget) } : {}),
    ...(draft.reuse ? { reuse: true } : {}),
    ...(tags.length > 0 ? { tags } : {}),
  };
  return { body, problems };
}

function readStep(
  type: JobType,
  draft: Draft,
  included: readonly JobType[],
  problems: Record<string, string>,
): Body {
  const { form, values } = stepOf(draft, type);
  const fields = [...fieldsToFill(type, form, inputsFromSteps(type, included)), ...STEP_OPTIONS];
  const read = readFields(fields, values);
  for (const [name, problem] of Object.entries(read.problems)) {
    problems[`params.${type}.${name}`] = problem;
  }
  return read.body;
}

function readSweep(text: string, problems: Record<string, string>): Body[] {
  return text.split("\n").flatMap((line, at) => {
    if (line.trim() === "") return [];
    try {
      const value: unknown = JSON.parse(line);
      if (typeof value === "object" && value !== null && !Array.isArray(value)) {
        return [value as Body];
      }
    } catch {
      // The line is not JSON: the statement below reports it.
    }
    problems.sweep = `Line ${at + 1} is not a JSON object, such as {"epochs": 3}.`;
    return [];
  });
}

/**
 * Converts `param` of an API error to the field's path in the form. Undefined if the form has no
 * such field.
 */
export function fieldPathOf(param: string, body: TemplateBody): string | undefined {
  const [first = "", index = ""] = param.split(".");
  const at = Number(index);
  switch (first) {
    case "gates":
      return body.gates?.[at] && `gate.${body.gates[at].step}`;
    case "params":
      return param.split(".").length > 2 ? param : undefined;
    case "name":
    case "tags":
    case "sweep":
    case "budget_usd":
      return first;
    default:
      return undefined;
  }
}
