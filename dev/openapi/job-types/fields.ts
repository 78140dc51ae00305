import { z } from "zod";
import { DECLARATIONS } from "../../../core/jobs/types";
import type { JobTypeDeclaration } from "../../../core/jobs/types/declaration";
import type { Schema } from "../typescript-types";

/** The declarations, typed as the general `JobTypeDeclaration` instead of literal types. */
export const declarations: readonly JobTypeDeclaration[] = DECLARATIONS;

/** A payload field as clients see it, under its name or an alias. */
export interface Field {
  name: string;
  schema: Schema;
  /** Whether every submission must have the field under this name. */
  isRequired: boolean;
}

/** The payload field that a client's parameter sets. @param name the field's name or an alias. */
export function fieldOf({ type, payload }: JobTypeDeclaration, name: string): Field {
  const first = payload.aliases?.[name] ?? name;
  const declared = payload.fields[first];
  if (!declared) throw new Error(`${type} declares a parameter "${name}", and no such field`);
  const { properties = {}, required = [] } = schemaOf(payload.fields);
  const schema = properties[first] ?? {};
  // If a type accepts several alternative sets of fields, treat no field as required. A field that
  // one set requires can be absent from another set.
  const isRequired = payload.forms === undefined && required.includes(first);
  return { name, schema, isRequired };
}

const schemaOf = (fields: z.ZodRawShape): Schema =>
  z.toJSONSchema(z.strictObject(fields), { io: "input" }) as Schema;

/** Parameters of the SDK method, in order. */
export const parametersOf = (declaration: JobTypeDeclaration): string[] => {
  const { byPlace, byName } = declaration.client.parameters;
  return [...byPlace, ...byName];
};

/** Whether the type accepts a dataset only by URI. */
export const takesUriOnly = ({ payload: { fields } }: JobTypeDeclaration): boolean =>
  "dataset_uri" in fields && !("dataset_id" in fields);

/**
 * Whether the option of `forge jobs submit` for this field also accepts a URI. The command sends a
 * URI as `dataset_uri`.
 */
export const mayBeUri = ({ payload }: JobTypeDeclaration, field: string): boolean =>
  field === "dataset_id" && "dataset_uri" in payload.fields;

export const GENERATED_NOTICE =
  "Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.";

/** `generate` → `Generate`. */
export const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** A JSON string literal is also a valid Python string literal. */
export const quoted = (value: string): string => JSON.stringify(value);

export const indent = (text: string, by: number): string =>
  text.replace(/^(?=.)/gm, " ".repeat(by));

/**
 * Returns `oneLine` if it fits into the line, else `lines`.
 *
 * @param others number of columns that are used by other text in the line.
 */
export const oneLineOr = (oneLine: string, lines: string, others: number): string =>
  others + oneLine.length <= MAX_COLUMNS ? oneLine : lines;

const MAX_COLUMNS = 100;

/** @throws if a declared text makes a line of the file too long. */
export function checkLines(path: string, content: string): string {
  const long = content.split("\n").find((line) => line.length > MAX_COLUMNS);
  if (long === undefined) return content;
  throw new Error(
    `a declared text is too long for ${path}, by ${long.length - MAX_COLUMNS}: ${long.trim()}`,
  );
}
