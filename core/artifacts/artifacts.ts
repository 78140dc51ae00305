import type { JobType } from "../jobs/job-types";

export const ARTIFACT_TYPES = ["dataset", "checkpoint", "eval", "deployment"] as const;
export type ArtifactType = (typeof ARTIFACT_TYPES)[number];

/** What one job type leaves behind, and where (spec.md 2.3 and 2.6). */
export interface ArtifactForm {
  type: ArtifactType;
  kind: string;
  /** The field of the job's result that carries the artifact's id. */
  idField: string;
  /** Prefix of minted ids. */
  idPrefix: string;
  /** Directory below the store's root; the artifact's id is the next segment. */
  directory: string;
}

export const ARTIFACT_FORMS: Record<JobType, ArtifactForm> = {
  generate: form("dataset", "raw_dataset", "dataset_id", "ds", "datasets"),
  audit: form("dataset", "scored_dataset", "dataset_id", "ds", "datasets"),
  distill: form("dataset", "distilled_dataset", "distilled_dataset_id", "ds", "distill"),
  train: form("checkpoint", "checkpoint", "checkpoint_id", "ckpt", "checkpoints"),
  evaluate: form("eval", "evaluation_report", "eval_id", "eval", "evals"),
  deploy: form("deployment", "deployment", "deployment_id", "dep", "deployments"),
};

export const ARTIFACT_KINDS = Object.values(ARTIFACT_FORMS).map(({ kind }) => kind);

function form(
  type: ArtifactType,
  kind: string,
  idField: string,
  idPrefix: string,
  directory: string,
): ArtifactForm {
  return { type, kind, idField, idPrefix, directory: `artifacts/${directory}` };
}

/** What an artifact is known by: its tenant's id for it, and the one that its folder has. */
export interface ArtifactIds {
  artifact_id: string;
  storage_id: string;
}

/** A payload names an artifact by its id, a URI in our store by its folder's: either finds it. */
export const findNamed = <T extends ArtifactIds>(artifacts: T[], id: unknown): T | undefined =>
  artifacts.find(({ artifact_id: own, storage_id: folder }) => own === id || folder === id);

/** Store keys are URIs below forge://: the first segment plays the bucket. */
export const storeUri = (key: string): string => `forge://${key}`;

export const artifactPrefix = (type: JobType, storageId: string): string =>
  `${ARTIFACT_FORMS[type].directory}/${storageId}/`;

/** The same for an artifact of the registry; where a worker says that it is, plays no part. */
export function prefixOfKind(kind: string, storageId: string): string {
  const form = Object.values(ARTIFACT_FORMS).find((known) => known.kind === kind);
  if (!form) throw new Error(`no artifact is of kind ${kind}`);
  return `${form.directory}/${storageId}/`;
}

export const billingRecordKey = (userId: string, jobId: string): string =>
  `billing/records/${userId}/${jobId}.json`;

/** The name of the manifest in its artifact's folder. */
export const MANIFEST_FILE = "manifest.json";

/** As ids are minted: one that looks so and was not minted for this attempt is somebody else's. */
export const MINTED_ID = /^(?:ds|ckpt|eval|dep)_[0-9a-hjkmnp-tv-z]{26}$/;

/** Artifact ids become segments of URLs, so they are held to a plain alphabet. */
export const ARTIFACT_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
