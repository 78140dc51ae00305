import type { FormSchema } from "virtual:submission-schemas";
import type { JobType } from "../jobs/declared-types";
import type { JobData } from "../jobs/job-data";
import { checkField } from "./check-field";
import { type FormFieldSchema, fieldsOf, formOf, formsOf } from "./fields";

/** Typed texts by field name. All job types share the texts, so a change of type keeps them. */
export type Values = Readonly<Record<string, string>>;

export type Body = Record<string, unknown>;

export interface Reading {
  /** The request body, without invalid fields. */
  body: Body;
  /** Error messages by field name. */
  problems: Record<string, string>;
}

export function readFields(fields: readonly FormFieldSchema[], values: Values): Reading {
  const body: Body = {};
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const { value, problem } = checkField(field, values[field.name] ?? "");
    if (problem) problems[field.name] = problem;
    if (value !== undefined) put(body, field.name, value);
  }
  return { body, problems };
}

function put(body: Body, name: string, value: unknown): void {
  const [first = "", second] = name.split(".");
  body[first] =
    second === undefined ? value : { ...(body[first] as Body | undefined), [second]: value };
}

/** Fields with two names (docs/api.md). A stored job uses the first name of the pair. */
const SAME_FIELD: readonly (readonly [string, string])[] = [
  ["size", "num_samples"],
  ["teacher", "teacher_model"],
  ["model", "model_id"],
  ["checkpoint_id", "model_id"],
];

/**
 * Returns the name that the form uses for a field of a stored job: the stored name or the field's
 * second name. Undefined if the form doesn't have the field.
 */
export const nameIn = (form: FormSchema, name: string): string | undefined =>
  name in form.fields
    ? name
    : SAME_FIELD.find(([stored, other]) => stored === name && other in form.fields)?.[1];

/**
 * Fills a form from a job. `form` is the index of the first form that has all fields of the job's
 * payload and requires no other field, or 0 if there is none.
 */
export function valuesOf(job: JobData): { form: number; values: Values } {
  const type = job.job_type as JobType;
  const stored = Object.keys(job.payload);
  const fits = formsOf(type).findIndex((form) => {
    const names = stored.map((name) => nameIn(form, name));
    return names.every(Boolean) && form.required.every((name) => names.includes(name));
  });
  const index = Math.max(0, fits);
  const form = formOf(type, index);
  const source: Body = { ...job };
  for (const [name, value] of Object.entries(job.payload)) {
    source[nameIn(form, name) ?? name] = value;
  }
  const values: Record<string, string> = {};
  for (const field of fieldsOf(form)) {
    const text = textOf(field, at(source, field.name));
    if (text !== undefined) values[field.name] = text;
  }
  return { form: index, values };
}

function at(source: Body, name: string): unknown {
  const [first = "", second] = name.split(".");
  const value = source[first];
  return second === undefined ? value : (value as Body | undefined)?.[second];
}

function textOf(field: FormFieldSchema, value: unknown): string | undefined {
  if (value == null || JSON.stringify(value) === JSON.stringify(field.default)) return undefined;
  if (Array.isArray(value)) return value.length > 0 ? value.join(", ") : undefined;
  return typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
}
