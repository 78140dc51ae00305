import { z } from "zod";
import { ARTIFACT_TYPES, prefixOfKind } from "../core/artifacts";
import { NotFound } from "../core/errors";
import type { Context } from "../infra/context";
import { type ArtifactRow, findArtifact, listArtifacts } from "../infra/database/artifacts";
import { listOf, pageOf, pageQuery, presentPage } from "../infra/http/lists";
import { type Principal, viewerOf } from "../infra/http/principal";
import { type Route, route } from "../infra/http/route";
import { artifactSchema, manifestSchema, presentArtifact } from "./present-artifact";
import { tenantFilter, tenantQuery } from "./tenant-filter";

const artifactsQuery = z.strictObject({
  ...pageQuery,
  type: z.enum(ARTIFACT_TYPES).optional(),
  job_id: z.string().min(1).max(128).optional().describe("what this job left behind"),
  ...tenantQuery,
});

const fileSchema = z
  .object({ path: z.string(), size_bytes: z.int(), sha256: z.string() })
  .meta({ id: "ArtifactFile" });

const NOT_FOUND = { 404: ["artifact_not_found"] };

export function artifactRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/artifacts"],
      scope: "user",
      operationId: "listArtifacts",
      tag: "Artifacts",
      summary: "List artifacts, newest first",
      query: artifactsQuery,
      answers: {
        200: { description: "a page of artifacts", schema: listOf("artifacts", artifactSchema) },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const viewer = tenantFilter(principal, query.user_id);
        const filter = { type: query.type, jobId: query.job_id };
        const rows = await listArtifacts(ctx.pool, viewer, filter, page);
        return presentPage("artifacts", rows, page, (row) => row.artifact_id, presentArtifact);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id"],
      scope: "user",
      operationId: "getArtifact",
      tag: "Artifacts",
      summary: "Read an artifact's entry in the registry",
      answers: { 200: { description: "the artifact", schema: artifactSchema } },
      refusals: NOT_FOUND,
      handle: async ({ params, principal }) =>
        presentArtifact(await requireArtifact(ctx, params, principal)),
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/manifest"],
      scope: "user",
      operationId: "getManifest",
      tag: "Artifacts",
      summary: "Read an artifact's manifest",
      answers: { 200: { description: "the manifest", schema: manifestSchema } },
      refusals: NOT_FOUND,
      handle: async ({ params, principal }) =>
        (await requireArtifact(ctx, params, principal)).manifest,
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/files"],
      scope: "user",
      operationId: "listFiles",
      tag: "Artifacts",
      summary: "List an artifact's files",
      answers: {
        200: {
          description: "the files, with their checksums, as its manifest has them",
          schema: z.object({ files: z.array(fileSchema) }),
        },
      },
      refusals: NOT_FOUND,
      handle: async ({ params, principal }) => ({
        files: filesOf(await requireArtifact(ctx, params, principal)),
      }),
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/files/*"],
      scope: "user",
      operationId: "getFile",
      tag: "Artifacts",
      summary: "Download one of an artifact's files",
      answers: {
        200: {
          description: "its bytes",
          content: { "application/octet-stream": z.string().meta({ contentEncoding: "binary" }) },
        },
      },
      refusals: { 404: ["artifact_not_found", "file_not_found"] },
      async handle({ params, reply, principal }) {
        const artifact = await requireArtifact(ctx, params, principal);
        const { "*": path = "" } = params;
        // Only what the manifest names: the path is compared, never resolved.
        const file = filesOf(artifact).find((known) => known.path === path);
        const key = `${prefixOfKind(artifact.kind, artifact.artifact_id)}${path}`;
        if (!file || (await ctx.store.sizeOf(key)) !== file.size_bytes) {
          throw new NotFound("file", path, "path");
        }
        return reply
          .type("application/octet-stream")
          .header("content-length", file.size_bytes)
          .send(ctx.store.read(key));
      },
    }),
  ];
}

type ManifestFile = z.infer<typeof fileSchema>;

const filesOf = ({ manifest }: ArtifactRow): ManifestFile[] =>
  (manifest.files ?? []) as ManifestFile[];

async function requireArtifact(
  ctx: Context,
  { artifact_id: id = "" }: Record<string, string>,
  principal: Principal,
): Promise<ArtifactRow> {
  const artifact = await findArtifact(ctx.pool, id, viewerOf(principal));
  if (!artifact) throw new NotFound("artifact", id, "artifact_id");
  return artifact;
}
