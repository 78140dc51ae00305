import { closest } from "fastest-levenshtein";
import { type ZodError, z } from "zod";
import { InvalidRequest } from "../../core/errors";

/** Parses with a schema; a failure names the field, and for an unknown one the nearest known name. */
export function parse<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  return withHints(known, () => schema.parse(value));
}

/** Runs a parser that throws ZodErrors, with the names that it knows for hints. */
export function withHints<T>(knownFields: string[], run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof z.ZodError) throw fromZod(error, knownFields);
    throw error;
  }
}

export function fromZod(error: ZodError, knownFields: string[] = []): InvalidRequest {
  const [issue] = error.issues;
  if (!issue) return new InvalidRequest("the request is invalid");
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const field = issue.keys[0] ?? "";
    const param = path ? `${path}.${field}` : field;
    const near = path === "" && knownFields.length > 0 ? closest(field, knownFields) : undefined;
    const hint = near ? `; did you mean "${near}"?` : "";
    return new InvalidRequest(`unknown field "${param}"${hint}`, param);
  }
  if (path === "") return new InvalidRequest(`the body: ${issue.message}`);
  const missing = issue.code === "invalid_type" && issue.message.includes("received undefined");
  const message = missing ? `"${path}" is required` : `"${path}": ${issue.message}`;
  return new InvalidRequest(message, path);
}
