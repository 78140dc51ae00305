import { type JobType, mapByType } from "../jobs/job-types";
import type { ArtifactForm } from "./artifact-form";

export const ARTIFACT_FORMS: Record<JobType, ArtifactForm> = mapByType(({ artifact }) => artifact);

export const ARTIFACT_KINDS = Object.values(ARTIFACT_FORMS).map(({ kind }) => kind);

/** The ids of an artifact. `artifact_id` is unique in its tenant; `storage_id` names its folder. */
export interface ArtifactIds {
  artifact_id: string;
  storage_id: string;
}

/**
 * Finds an artifact by either of its ids. Payloads contain the `artifact_id`. Forge's URIs contain
 * the `storage_id`.
 */
export const findByEitherId = <T extends ArtifactIds>(artifacts: T[], id: unknown): T | undefined =>
  artifacts.find(({ artifact_id, storage_id }) => artifact_id === id || storage_id === id);

/** The forge:// URI of a store key. The key's first segment takes the place of the bucket. */
export const storeUri = (key: string): string => `forge://${key}`;

export const artifactPrefix = (type: JobType, storageId: string): string =>
  `${ARTIFACT_FORMS[type].directory}/${storageId}/`;

/** The folder of a registered artifact. It does not depend on the URI that a worker reported. */
export function prefixOfKind(kind: string, storageId: string): string {
  const form = Object.values(ARTIFACT_FORMS).find((known) => known.kind === kind);
  if (!form) throw new Error(`no artifact is of kind ${kind}`);
  return `${form.directory}/${storageId}/`;
}

/** The folder of the files of all bills. */
export const BILLING_RECORDS = "billing/records/";

export const billingRecordKey = (userId: string, jobId: string): string =>
  `${BILLING_RECORDS}${userId}/${jobId}.json`;

export const MANIFEST_FILE = "manifest.json";

/**
 * Format of the ids that Forge generates. An attempt may use such an id only if Forge generated it
 * for this attempt, because the id is also the name of the folder with the attempt's uploads.
 */
export const GENERATED_ID = new RegExp(
  `^(?:${[...new Set(Object.values(ARTIFACT_FORMS).map(({ idPrefix }) => idPrefix))].join("|")})_[0-9a-hjkmnp-tv-z]{26}$`,
);

/** Artifact ids become URL segments, so only these characters are allowed. */
export const ARTIFACT_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
