import { NotFound } from "../core/errors";
import type { Context } from "../infra/context";
import { type ArtifactRow, findArtifact } from "../infra/database/artifacts";
import type { ForgeRequest, Route } from "../infra/http/app";
import { viewerOf } from "./viewer";

export function artifactRoutes(ctx: Context): Route[] {
  return [
    {
      method: "GET",
      paths: ["/api/artifacts/:artifact_id"],
      scope: "user",
      handle: async (request) => presentArtifact(await requireArtifact(ctx, request)),
    },
    {
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/manifest"],
      scope: "user",
      handle: async (request) => (await requireArtifact(ctx, request)).manifest,
    },
  ];
}

export function presentArtifact(artifact: ArtifactRow) {
  return {
    artifact_id: artifact.artifact_id,
    artifact_type: artifact.artifact_type,
    kind: artifact.kind,
    created_by: artifact.created_by,
    uri: artifact.uri,
    created_at: artifact.created_at.toISOString(),
    source_jobs: artifact.source_jobs,
    source_artifacts: artifact.source_artifacts,
    size_bytes: artifact.size_bytes,
    manifest: artifact.manifest,
  };
}

async function requireArtifact(ctx: Context, request: ForgeRequest): Promise<ArtifactRow> {
  const { artifact_id: id } = request.params as { artifact_id: string };
  const artifact = await findArtifact(ctx.pool, id, viewerOf(request.principal));
  if (!artifact) throw new NotFound("artifact", id, "artifact_id");
  return artifact;
}
