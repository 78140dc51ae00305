export const ARTIFACT_TYPES = ["dataset", "checkpoint", "eval", "deployment"] as const;
export type ArtifactType = (typeof ARTIFACT_TYPES)[number];

/** The artifact that jobs of one type create, and where it is stored (spec.md 2.3 and 2.6). */
export interface ArtifactForm {
  type: ArtifactType;
  /** More specific than `type`, e.g. `scored_dataset`. Each job type makes a different kind. */
  kind: string;
  /** The field of the job's result that carries the artifact's id. */
  idField: string;
  /** Prefix of generated ids. */
  idPrefix: string;
  /** Directory below the store's root. It has a folder for each artifact. */
  directory: string;
}

/** @param directory below `artifacts/` in the store. */
export const artifactForm = (
  type: ArtifactType,
  kind: string,
  idField: string,
  idPrefix: string,
  directory: string,
): ArtifactForm => ({ type, kind, idField, idPrefix, directory: `artifacts/${directory}` });

/** A generated or uploaded dataset. */
export const RAW_DATASET = artifactForm("dataset", "raw_dataset", "dataset_id", "ds", "datasets");
