import { closest, distance } from "fastest-levenshtein";
import { z } from "zod";
import { InvalidRequest } from "../../core/errors";

/**
 * Parses a value with a schema. An error names the field. For an unknown field, the error suggests
 * a similar known field.
 */
export function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  return withHints(
    (path) => fieldsAt(schema, path),
    () => schema.parse(value),
  );
}

/** Returns the known field names of the object at a path. */
type KnownFields = (path: PropertyKey[]) => string[];

/**
 * Calls `run` and turns a ZodError into an InvalidRequest. For an unknown field, the error suggests
 * a similar known one.
 */
export function withHints<T>(knownFields: KnownFields, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof z.ZodError) throw fromZod(error, knownFields);
    throw error;
  }
}

/** Returns `; did you mean "…"?` if a known name is similar, else an empty string. */
export function didYouMean(name: string, known: readonly string[]): string {
  if (known.length === 0) return "";
  const near = closest(name, [...known]);
  return distance(name, near) <= Math.max(2, near.length / 2) ? `; did you mean "${near}"?` : "";
}

export function fromZod(error: z.ZodError, knownFields: KnownFields = () => []): InvalidRequest {
  const [issue] = error.issues;
  if (!issue) return new InvalidRequest("the request is invalid");
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const field = issue.keys[0] ?? "";
    const param = path ? `${path}.${field}` : field;
    const known = knownFields(issue.path).map((name) => [...issue.path, name].join("."));
    const hint = didYouMean(param, known);
    return new InvalidRequest(`unknown field "${param}"${hint}`, param);
  }
  if (path === "") return new InvalidRequest(`the body: ${issue.message}`);
  const missing = issue.code === "invalid_type" && issue.message.includes("received undefined");
  const message = missing ? `"${path}" is required` : `"${path}": ${issue.message}`;
  return new InvalidRequest(message, path);
}

/** The field names of the object schema at a path; empty if there is none. */
export function fieldsAt(schema: unknown, path: PropertyKey[]): string[] {
  let at = unwrap(schema);
  for (const step of path) {
    if (at instanceof z.ZodArray) at = unwrap(at.element);
    else if (at instanceof z.ZodObject) at = unwrap(at.shape[String(step)]);
    else return [];
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : [];
}

function unwrap(schema: unknown): unknown {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodNullable
  ) {
    return unwrap(schema.unwrap());
  }
  return schema;
}
