import type { FormSchema } from "virtual:submission-schemas";
import type { JobType } from "../../jobs/search";
import {
  type FormFieldSchema,
  formOf,
  formsOf,
  OPTION_FIELDS,
  payloadFields,
} from "../../submit/fields";
import type { TemplateName } from "../search";

/** The steps of each template, in their order (docs/pipelines.md). */
export const TEMPLATE_STEPS: Record<TemplateName, readonly JobType[]> = {
  "byo-data": ["audit", "distill", "train", "evaluate", "deploy"],
  synthetic: ["generate", "audit", "distill", "train", "evaluate", "deploy"],
};

export const TEMPLATE_TEXTS: Record<TemplateName, string> = {
  "byo-data": "Your dataset",
  synthetic: "A generated dataset",
};

export const STEP_TEXTS: Record<JobType, string> = {
  generate: "Make a dataset with a teacher model.",
  audit: "Score the dataset's rows.",
  distill: "Have a teacher answer, and keep the good rows.",
  train: "Train a model on the dataset.",
  evaluate: "Score the checkpoint.",
  deploy: "Serve the checkpoint until someone stops it.",
};

export const GATE_EXAMPLES: Record<JobType, string> = {
  generate: "metrics.tokens_generated > 0",
  audit: "quality.clarity_mean >= 0.6",
  distill: "metrics.tokens_generated > 0",
  train: "metrics.final_loss < 1",
  evaluate: "scores.overall >= 0.7",
  deploy: "metrics.gpu_hours < 1",
};

const MAKES_DATASET: readonly JobType[] = ["generate", "audit", "distill"];
const DATASET_FIELDS = ["dataset_id", "dataset_uri"];
const CHECKPOINT_FIELDS = ["checkpoint_id", "model_id"];

export interface Wired {
  /** Payload fields that an earlier step fills in. */
  fields: readonly string[];
  /** Which step, and what it makes. */
  from?: { step: JobType; what: "dataset" | "checkpoint" };
}

/** What a step takes from those before it, of a pipeline of these steps. */
export function wiredOf(type: JobType, included: readonly JobType[]): Wired {
  const before = included.slice(0, included.indexOf(type));
  if (type === "evaluate" || type === "deploy") {
    return before.includes("train")
      ? { fields: CHECKPOINT_FIELDS, from: { step: "train", what: "checkpoint" } }
      : { fields: [] };
  }
  const source = before.filter((each) => MAKES_DATASET.includes(each)).at(-1);
  return source
    ? { fields: DATASET_FIELDS, from: { step: source, what: "dataset" } }
    : { fields: [] };
}

/** The payload's fields that are left to fill in. */
export const fieldsLeft = (type: JobType, form: number, wired: Wired): FormFieldSchema[] =>
  payloadFields(formOf(type, form)).filter(({ name }) => !wired.fields.includes(name));

/** Options of a step; the pipeline has notes and tags of its own. */
export const STEP_OPTIONS = OPTION_FIELDS.filter(({ name }) => name !== "notes" && name !== "tags");

/** Other names of the same fields, in a type's second form. */
const SAME: Record<string, string> = {
  num_samples: "size",
  teacher_model: "teacher",
  model_id: "model",
};

/** The forms of a type that differ in more than the names of their fields. */
export function formsToChoose(type: JobType, wired: Wired): FormSchema[] {
  const forms = formsOf(type);
  const contents = forms.map(({ fields }) =>
    Object.keys(fields)
      .filter((name) => !wired.fields.includes(name))
      .map((name) => SAME[name] ?? name)
      .sort()
      .join(),
  );
  const isModel = type === "evaluate" || type === "deploy";
  return isModel || new Set(contents).size < 2 ? [] : forms;
}
