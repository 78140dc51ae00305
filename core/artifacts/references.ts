import { type OwnStore, ownedThingIn } from "./dataset-uri";

/** Fields that may name what a job reads: of its payload, and of its params. */
const PAYLOAD_FIELDS = ["dataset_uri", "dataset_id", "checkpoint_id", "benchmark", "teacher"];
const PARAMS_FIELDS = ["prompts", "judge"];

export interface Reference {
  param: string;
  /** An artifact's id, a URI, or a name that only the worker knows. */
  value: string;
  /**
   * The artifact that it would be, if there is one; `null` for a place in our store that is nobody's to
   * name; undefined for a place that is not ours.
   */
  artifactId: string | null | undefined;
}

/** Everything that a job's submission names to be read. */
export function referencesOf(
  payload: Record<string, unknown>,
  params: Record<string, unknown>,
  own: OwnStore,
): Reference[] {
  return [
    ...PAYLOAD_FIELDS.map((param) => [param, payload[param]]),
    ...PARAMS_FIELDS.map((param) => [param, params[param]]),
  ]
    .filter((pair): pair is [string, string] => typeof pair[1] === "string")
    .map(([param, value]) => ({
      param,
      value,
      artifactId: value.includes("://") ? ownedThingIn(value, own) : value,
    }));
}

/** Of what a job may name, all that its artifact is made from: what it reads, and models by their id. */
export function sourceIdsOf(
  payload: Record<string, unknown>,
  params: Record<string, unknown>,
  own: OwnStore,
): string[] {
  const models = [payload.model, payload.student_model].filter((id) => typeof id === "string");
  return [...idsIn(referencesOf(payload, params, own)), ...models];
}

/** The ids among them. */
export const idsIn = (references: Reference[]): string[] =>
  references.map(({ artifactId }) => artifactId).filter((id) => typeof id === "string");
