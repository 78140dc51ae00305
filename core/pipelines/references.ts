import { InvalidRequest } from "../errors";
import type { JobType } from "../jobs/job-types";
import type { PipelineStep } from "./step";

/** A value of a step's payload or params that an earlier step will have made. */
export interface StepReference {
  /** The step's name; undefined: the one that is chosen. */
  step: string | undefined;
  part: "result" | "payload";
  /** Below that part. */
  path: string[];
}

const REFERENCE =
  /^\$\{(?:steps\.([A-Za-z][A-Za-z0-9_-]{0,62})|(chosen))\.(result|payload)\.([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\}$/;

/** @throws InvalidRequest for what looks like a reference and is none. */
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

/** Every reference in a value, however deep, with the path to it. */
export function referencesIn(
  value: unknown,
  at: string[] = [],
): { reference: StepReference; at: string[] }[] {
  if (typeof value === "string") {
    const reference = withParam(at, () => referenceIn(value));
    return reference ? [{ reference, at }] : [];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => referencesIn(inner, [...at, name]));
}

function withParam<T>(at: string[], run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof InvalidRequest ? new InvalidRequest(error.message, at.join(".")) : error;
  }
}

/** The same value with each reference in it replaced. */
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

/** What a value is the name of, where that matters. */
type Kind = "dataset id" | "dataset URI" | "checkpoint id" | "evaluation id" | "deployment id";

/** Of the fields that spec.md 2.3 and contract.md know; a worker may say more, of which nothing is known. */
const RESULT_KINDS: Record<JobType, Record<string, Kind>> = {
  generate: { dataset_id: "dataset id", dataset_uri: "dataset URI" },
  audit: { dataset_id: "dataset id", dataset_uri: "dataset URI" },
  distill: { distilled_dataset_id: "dataset id" },
  train: { checkpoint_id: "checkpoint id" },
  evaluate: { eval_id: "evaluation id" },
  deploy: { deployment_id: "deployment id" },
};

/** What these fields of a payload take; any other takes whatever comes. */
const PAYLOAD_KINDS: Record<string, Kind> = {
  dataset_id: "dataset id",
  dataset_uri: "dataset URI",
  checkpoint_id: "checkpoint id",
};

/** Why a payload's field can't take what a reference leads to; undefined where it can. */
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
  const kinds = part === "payload" ? PAYLOAD_KINDS : RESULT_KINDS[source.job_type];
  const given = deeper.length === 0 && Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (taken === undefined || taken === given) return undefined;
  const offer = Object.keys(kinds).find((known) => kinds[known] === taken);
  const hint = offer === undefined ? "" : `; its ${offer} is one`;
  const what = given === undefined ? "is not known to be one" : `is a ${given}`;
  return `"${field}" takes a ${taken}, and ${part}.${path.join(".")} of step "${source.name}" (${source.job_type}) ${what}${hint}`;
}
