import type { FormSchema } from "virtual:submission-schemas";
import { JOB_TYPE_FACTS, type JobType } from "../../jobs/declared-types";
import {
  type FormFieldSchema,
  formOf,
  formsOf,
  OPTION_FIELDS,
  payloadFields,
} from "../../submit/fields";
import type { TemplateName } from "../search";

export const TEMPLATE_TEXTS: Record<TemplateName, string> = {
  "byo-data": "Your dataset",
  synthetic: "A generated dataset",
};

/** Payload fields that name an artifact of an earlier step. */
const FIELDS = {
  dataset: ["dataset_id", "dataset_uri"],
  checkpoint: ["checkpoint_id", "model_id"],
} as const;

export interface StepInputs {
  /** Payload fields that an earlier step fills in. */
  fields: readonly string[];
  /** The step that fills in these fields, and the type of the artifact that it creates. */
  from?: { step: JobType; what: "dataset" | "checkpoint" };
}

/** The inputs that a step gets from earlier steps. `included` has the pipeline's steps in order. */
export function inputsFromSteps(type: JobType, included: readonly JobType[]): StepInputs {
  const before = included.slice(0, included.indexOf(type));
  const what = JOB_TYPE_FACTS[type].takes;
  const step = before.filter((each) => JOB_TYPE_FACTS[each].makes === what).at(-1);
  return what && step ? { fields: FIELDS[what], from: { step, what } } : { fields: [] };
}

/** The payload fields that the user fills in. */
export const fieldsToFill = (type: JobType, form: number, wired: StepInputs): FormFieldSchema[] =>
  payloadFields(formOf(type, form)).filter(({ name }) => !wired.fields.includes(name));

/** The options of a single step. Leaves out notes and tags, which belong to the pipeline. */
export const STEP_OPTIONS = OPTION_FIELDS.filter(({ name }) => name !== "notes" && name !== "tags");

/**
 * The forms of a type that the user can choose from. Empty if the forms differ only in aliases of
 * fields, or in fields that an earlier step fills in.
 */
export function formsToChoose(type: JobType, wired: StepInputs): FormSchema[] {
  const forms = formsOf(type);
  const { aliases } = JOB_TYPE_FACTS[type];
  const contents = forms.map(({ fields }) =>
    Object.keys(fields)
      .filter((name) => !wired.fields.includes(name))
      .map((name) => aliases[name] ?? name)
      .sort()
      .join(),
  );
  return new Set(contents).size < 2 ? [] : forms;
}
