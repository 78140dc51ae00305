import { z } from "zod";
import { ARTIFACT_TYPES } from "../../core/artifacts/artifact-form";
import { manifestSchema } from "../../core/artifacts/manifest-schema";
import { timestamp } from "../../core/timestamp";
import type { ArtifactRow } from "../../services/artifacts/artifacts";

/** An artifact, as contract.md defines it. */
export const artifactFields = {
  artifact_id: z.string(),
  artifact_type: z.enum(ARTIFACT_TYPES),
  kind: z.string().describe("raw_dataset, scored_dataset, distilled_dataset, checkpoint, …"),
  name: z.string().nullable().describe("name of an uploaded dataset"),
  created_by: z.string().describe("the name of the key that created the artifact"),
  uri: z.string(),
  created_at: timestamp,
  source_jobs: z.array(z.string()),
  source_artifacts: z.array(z.string()),
  size_bytes: z.int().nullable(),
  deleted_at: timestamp.nullable().describe("when the bytes were deleted; the entry stays"),
  manifest: manifestSchema,
};

export const artifactSchema = z.object(artifactFields).meta({ id: "Artifact" });

export function presentArtifact(artifact: ArtifactRow): z.infer<typeof artifactSchema> {
  return {
    artifact_id: artifact.artifact_id,
    artifact_type: artifact.artifact_type,
    kind: artifact.kind,
    name: artifact.name,
    created_by: artifact.created_by,
    uri: artifact.uri,
    created_at: artifact.created_at.toISOString(),
    source_jobs: artifact.source_jobs,
    source_artifacts: artifact.source_artifacts,
    size_bytes: artifact.size_bytes,
    deleted_at: artifact.deleted_at?.toISOString() ?? null,
    manifest: artifact.manifest,
  };
}
