import { artifactIdIn, type OwnStore } from "./dataset-uri";

/** Fields of a job's payload and params that may refer to its inputs. */
const PAYLOAD_FIELDS = ["dataset_uri", "dataset_id", "checkpoint_id", "benchmark", "teacher"];
const PARAMS_FIELDS = ["prompts", "judge"];

export interface Reference {
  param: string;
  /** An artifact id, a URI, or a name that only the worker can resolve. */
  value: string;
  /**
   * The artifact id to look up. Null: the value is a URI in Forge's store that jobs must not use.
   * Undefined: there is nothing to look up, for example for a URI in another store.
   */
  artifactId: string | null | undefined;
}

/** All inputs that a job's submission refers to. */
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
      artifactId: value.includes("://") ? artifactIdIn(value, own) : value,
    }));
}

/**
 * The ids that a job gives for its inputs and models. Some are names that no artifact has, such as
 * `builtin:tiny`.
 */
export function sourceIdsOf(
  payload: Record<string, unknown>,
  params: Record<string, unknown>,
  own: OwnStore,
): string[] {
  const models = [payload.model, payload.student_model].filter((id) => typeof id === "string");
  return [...idsIn(referencesOf(payload, params, own)), ...models];
}

export const idsIn = (references: Reference[]): string[] =>
  references.map(({ artifactId }) => artifactId).filter((id) => typeof id === "string");
