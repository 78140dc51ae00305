import { InvalidRequest } from "../errors";
import { declarationOf } from "../jobs/job-types";
import { REFERENCE_FIELDS, type ReferenceKind } from "../jobs/types/declaration";
import type { PipelineStep } from "./step";

/** A reference in a step's payload or params to a value of an earlier step. */
export interface StepReference {
  /** The step's name. Undefined: the step that `choose` selects. */
  step: string | undefined;
  part: "result" | "payload";
  /** Path of the value within the step's result or payload. */
  path: string[];
}

const REFERENCE =
  /^\$\{(?:steps\.([A-Za-z][A-Za-z0-9_-]{0,62})|(chosen))\.(result|payload)\.([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\}$/;

/** @throws InvalidRequest for text that contains "${" and is not a valid reference. */
function referenceIn(value: unknown): StepReference | undefined {
  if (typeof value !== "string" || !value.includes("${")) return undefined;
  const [, step, chosen, part, path] = REFERENCE.exec(value) ?? [];
  if ((step ?? chosen) === undefined || path === undefined) {
    throw new InvalidRequest(
      `"${value}" is no reference: one is the whole value, "\${steps.<name>.result.<field>}" ` +
        'or "${chosen.result.<field>}"',
    );
  }
  return { step, part: part === "payload" ? "payload" : "result", path: path.split(".") };
}

/** All references in a value, at any depth, each with its path. */
export function referencesIn(
  value: unknown,
  at: string[] = [],
): { reference: StepReference; at: string[] }[] {
  if (typeof value === "string") {
    const reference = withParam(at.join("."), () => referenceIn(value));
    return reference ? [{ reference, at }] : [];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => referencesIn(inner, [...at, name]));
}

/** Calls `run`. If `run` throws an InvalidRequest, throws it again with this `param`. */
export function withParam<T>(param: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof InvalidRequest ? new InvalidRequest(error.message, param) : error;
  }
}

/** Returns a copy of the value with each reference replaced. */
export function replaceReferences(
  value: unknown,
  replace: (reference: StepReference, text: string) => unknown,
): unknown {
  if (typeof value === "string") {
    const reference = referenceIn(value);
    return reference ? replace(reference, value) : value;
  }
  if (Array.isArray(value)) return value.map((inner) => replaceReferences(inner, replace));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, replaceReferences(inner, replace)]),
  );
}

/** Kinds of payload fields. A field that is not listed accepts any value. */
const PAYLOAD_KINDS: Record<string, ReferenceKind> = REFERENCE_FIELDS;

/** Why a payload field can't take the value of a reference; undefined if it can. */
export function mismatchOf(
  field: string,
  { part, path }: StepReference,
  source: Pick<PipelineStep, "name" | "job_type" | "payload">,
): string | undefined {
  const taken = Object.hasOwn(PAYLOAD_KINDS, field) ? PAYLOAD_KINDS[field] : undefined;
  const [name = "", ...deeper] = path;
  if (part === "payload" && !Object.hasOwn(source.payload, name)) {
    return `step "${source.name}" has no "${name}" in its payload`;
  }
  const kinds = part === "payload" ? PAYLOAD_KINDS : declarationOf(source.job_type).results;
  const given = deeper.length === 0 && Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (taken === undefined || taken === given) return undefined;
  const offer = Object.keys(kinds).find((known) => kinds[known] === taken);
  const hint = offer === undefined ? "" : `; its ${offer} is one`;
  const what = given === undefined ? "is not known to be one" : `is a ${given}`;
  return `"${field}" takes a ${taken}, and ${part}.${path.join(".")} of step "${source.name}" (${source.job_type}) ${what}${hint}`;
}
