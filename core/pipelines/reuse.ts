import type { OwnStore } from "../artifacts/dataset-uri";
import { referencesOf } from "../artifacts/references";
import { canonicalJson } from "../canonical-json";
import type { JobType } from "../jobs/job-types";

/** The files of an artifact, as its manifest has them. */
interface Files {
  files: { path: string; sha256: string }[];
  verified: boolean;
}

/** A deployment is a thing that runs: another one is wanted, not the same again. */
export const isReusable = (type: JobType): boolean => type !== "deploy";

/** Models are named by a field that may name a checkpoint. */
const MODELS = ["model", "student_model"];

/** Fields that name files, whoever knows the name: a teacher's name stands for itself. */
const INPUTS = ["dataset_id", "checkpoint_id"];

/**
 * A text that is equal for jobs that make the same from the same: type, payload and params, with what is in
 * each artifact that they name in place of its id. Null where that is not known: files that we did not see, in a bucket
 * that is not ours.
 *
 * @param manifestOf of the tenant's artifact of that id; undefined where there is none, so that the name is
 * taken for what only workers know, a teacher or a base model.
 */
export function workOf(
  type: JobType,
  payload: Record<string, unknown>,
  params: Record<string, unknown>,
  own: OwnStore,
  manifestOf: (artifactId: string) => Files | undefined,
): string | null {
  const contents: [param: string, content: string][] = [];
  const models = MODELS.flatMap((param) => {
    const value = payload[param];
    return typeof value === "string" ? [{ param, value, artifactId: value }] : [];
  });
  for (const { param, value, artifactId } of [...referencesOf(payload, params, own), ...models]) {
    const manifest = typeof artifactId === "string" ? manifestOf(artifactId) : undefined;
    if (manifest) {
      if (!manifest.verified || manifest.files.length === 0) return null;
      // Of a URI, which of the files it leads to.
      const rest = value.split(`/${artifactId}`)[1] ?? "";
      contents.push([param, `${contentOf(manifest)}${rest}`]);
    } else if (value.includes("://") || INPUTS.includes(param)) return null;
  }
  const contained = Object.fromEntries(contents);
  const without = (fields: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => !Object.hasOwn(contained, name)));
  const told = { type, payload: without(payload), params: without(params), contained };
  return canonicalJson(told);
}

const contentOf = ({ files }: Files): string =>
  files
    .map(({ path, sha256 }) => `${sha256} ${path}`)
    .sort()
    .join("\n");
