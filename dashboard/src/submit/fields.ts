import {
  type FieldSchema,
  type FormSchema,
  OPTIONS,
  SUBMISSIONS,
} from "virtual:submission-schemas";
import type { JobType } from "../jobs/declared-types";
import { capitalised, uncapitalised } from "../ui/format";

export interface FormFieldSchema extends FieldSchema {
  /** The field's name in the API and in an error's `param`, e.g. `epochs`, `resources.gpu`. */
  name: string;
  required: boolean;
}

/** The fields of one payload form, required fields first. */
export function payloadFields(form: FormSchema): FormFieldSchema[] {
  const fields = Object.entries(form.fields).map(([name, schema]) => ({
    ...schema,
    name,
    required: form.required.includes(name),
  }));
  return fields.sort((a, b) => Number(b.required) - Number(a.required));
}

export const formsOf = (type: JobType): FormSchema[] => SUBMISSIONS[type] ?? [];

/** The form at this index, or the first form if the index does not exist. */
export function formOf(type: JobType, index: number): FormSchema {
  const forms = formsOf(type);
  return forms[index] ?? forms[0] ?? { required: [], fields: {} };
}

/** The options of a submission. Each property of an object option is a separate field. */
export const OPTION_FIELDS: readonly FormFieldSchema[] = Object.entries(OPTIONS).flatMap(
  ([name, schema]) =>
    schema.properties
      ? Object.entries(schema.properties).map(([part, inner]) => ({
          ...inner,
          name: `${name}.${part}`,
          required: false,
        }))
      : [{ ...schema, name, required: false }],
);

/** All fields of a submission: the fields of this payload form, then the options. */
export const fieldsOf = (form: FormSchema): FormFieldSchema[] => [
  ...payloadFields(form),
  ...OPTION_FIELDS,
];

const LABELS: Record<string, string> = {
  num_samples: "Number of samples",
  "resources.gpu": "GPUs",
  "resources.gpu_type": "GPU type",
  "resources.memory_gb": "GPU memory (GB)",
  "resources.tags": "Worker tags",
  timeout_s: "Timeout (s)",
  params: "Parameters for the worker",
};

/** The label of a field, e.g. "Dataset URI" for `dataset_uri`. */
export function labelOf(name: string): string {
  const known = LABELS[name];
  if (known) return known;
  const words = name.replaceAll("_", " ").replace(/\b(id|uri)\b/g, (word) => word.toUpperCase());
  return capitalised(words);
}

/**
 * The schema's description. Its first letter becomes a capital, unless it starts with a URL scheme.
 * For a list, also says that commas separate the items.
 */
export const hintOf = ({ description, type }: FieldSchema): string | undefined => {
  const isAddress = description !== undefined && /^\w+:\/\//.test(description);
  const text = description && !isAddress ? capitalised(description) : description;
  if (type !== "array") return text;
  return text ? `${text}; separated by commas` : "Separated by commas";
};

/** The title of a form: its required fields. */
export const formTitle = (form: FormSchema): string =>
  form.required
    .map((name, at) => (at === 0 ? labelOf(name) : uncapitalised(labelOf(name))))
    .join(", ");
