import { type OwnStore, storeKeyOf } from "../artifacts/dataset-uri";
import { referencesOf } from "../artifacts/source-references";
import { canonicalJson } from "../canonical-json";
import { declarationOf, type JobType } from "../jobs/job-types";

/** The files of an artifact, from its manifest. */
interface Files {
  files: { path: string; sha256: string }[];
  verified: boolean;
}

/**
 * True if a step may reuse an earlier artifact of this type. False for deployments: each step that
 * deploys must start a server of its own.
 */
export const isReusable = (type: JobType): boolean =>
  declarationOf(type).completion !== "deployment";

/**
 * Part of each key since version 2, so that keys of different versions never match. In version 1,
 * jobs that used different files of an artifact could have equal keys.
 */
const VERSION = 2;

/** Fields that name a model or a checkpoint. */
const MODELS = ["model", "student_model"];

/**
 * Payload fields whose value must be the id of an artifact with a manifest. Otherwise, `reuseKeyOf`
 * returns null. Other fields may contain a name, for example of a teacher. The name then becomes
 * part of the key.
 */
const INPUTS = ["dataset_id", "checkpoint_id"];

/**
 * A key that is equal for jobs that do the same work on the same inputs. It contains the type,
 * payload and params, with the ids of artifacts replaced by the checksums of their files. Null if
 * an input's files are unverified or unknown, e.g. in a bucket outside Forge's store.
 * @param manifestOf returns the manifest of the tenant's artifact with this id. Undefined if there
 * is none, for example because the id is the name of a base model, which only workers know.
 */
export function reuseKeyOf(
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
      contents.push([param, `${contentOf(manifest)}${selectedPath(value, own)}`]);
    } else if (value.includes("://") || INPUTS.includes(param)) return null;
  }
  const contained = Object.fromEntries(contents);
  const without = (fields: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => !Object.hasOwn(contained, name)));
  const work = {
    version: VERSION,
    type,
    payload: without(payload),
    params: without(params),
    contained,
  };
  return canonicalJson(work);
}

/** The path after the artifact's id in a URI, which selects files of the artifact. */
function selectedPath(reference: string, own: OwnStore): string {
  const key = reference.includes("://") ? storeKeyOf(reference, own) : undefined;
  const [, , , ...path] = key?.split("/") ?? [];
  return path.map((segment) => `/${segment}`).join("");
}

const contentOf = ({ files }: Files): string =>
  files
    .map(({ path, sha256 }) => `${sha256} ${path}`)
    .sort()
    .join("\n");
