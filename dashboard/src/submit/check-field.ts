import { commaSeparated } from "../ui/format";
import type { FormFieldSchema } from "./fields";

/** Result of a check: a value, a problem, or neither if the field is omitted. */
export interface Checked {
  value?: unknown;
  problem?: string;
}

/** Checks one field against its schema. The server checks everything again. */
export function checkField(field: FormFieldSchema, text: string): Checked {
  const trimmed = text.trim();
  if (trimmed === "") return field.required ? { problem: "This is required." } : {};
  switch (field.type) {
    case "integer":
      return checkInteger(field, trimmed);
    case "array":
      return checkList(field, trimmed);
    case "object":
      return checkObject(trimmed);
    default:
      return checkText(field, trimmed);
  }
}

function checkInteger({ minimum, maximum }: FormFieldSchema, text: string): Checked {
  if (!/^[+-]?\d+$/.test(text)) return { problem: "This must be a whole number." };
  const value = Number(text);
  if (minimum !== undefined && value < minimum) return { problem: `At least ${minimum}.` };
  if (maximum !== undefined && value > maximum) return { problem: `At most ${maximum}.` };
  return { value };
}

function checkText(
  { name, maxLength, pattern, description }: FormFieldSchema,
  text: string,
): Checked {
  const problem = problemOfText(text, maxLength);
  if (problem) return { problem };
  // Checks the pattern only for URIs. For names, the server's error is clearer: it says which
  // characters are invalid. Skips file:// URIs: only the server knows which folders are allowed.
  if (
    pattern &&
    name.endsWith("_uri") &&
    !text.startsWith("file://") &&
    !new RegExp(pattern, "u").test(text)
  ) {
    return { problem: `This must be ${description ?? "of another form"}.` };
  }
  return { value: text };
}

function checkList({ maxItems, items }: FormFieldSchema, text: string): Checked {
  const value = commaSeparated(text);
  if (maxItems !== undefined && value.length > maxItems) return { problem: `At most ${maxItems}.` };
  const problem = value.map((each) => problemOfText(each, items?.maxLength)).find(Boolean);
  return problem ? { problem } : { value };
}

const problemOfText = (text: string, maxLength = Number.POSITIVE_INFINITY): string | undefined =>
  text.length > maxLength ? `At most ${maxLength} characters.` : undefined;

function checkObject(text: string): Checked {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value };
    return { problem: 'This must be a JSON object, such as {"lr": 0.0001}.' };
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : error}` };
  }
}
