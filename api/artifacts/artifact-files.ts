import { z } from "zod";
import { MANIFEST_FILE, prefixOfKind } from "../../core/artifacts/artifacts";
import { manifestFileSchema } from "../../core/artifacts/manifest-schema";
import { NotFound } from "../../core/errors";
import { sendObject } from "../../platform/http/byte-range";
import { type Route, route } from "../../platform/http/route";
import { archiveOf } from "../../platform/store/archive";
import type { ArtifactRow } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import { tenantQuery } from "../accounts/tenant-filter";
import { requireArtifact, requireBytes, requireFile } from "./find-artifact";

export const BINARY = {
  "application/octet-stream": z.string().meta({ contentEncoding: "binary" }),
};
const GONE = { 410: ["artifact_deleted"] };
const AMBIGUOUS = { 400: ["ambiguous_id"] };

export function artifactFileRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/files"],
      scope: "user",
      outsideConnectionQueue: true,
      operationId: "listFiles",
      tag: "Artifacts",
      summary: "List an artifact's files",
      query: z.strictObject(tenantQuery),
      responses: {
        200: {
          description: "the files with their checksums, as in the manifest",
          schema: z.object({ files: z.array(manifestFileSchema) }),
        },
      },
      errorCodes: { ...AMBIGUOUS, 404: ["artifact_not_found"] },
      handle: async (call) => ({ files: (await requireArtifact(ctx, call)).manifest.files }),
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/files/*"],
      scope: "user",
      outsideConnectionQueue: true,
      operationId: "getFile",
      tag: "Artifacts",
      summary: "Download a file of an artifact",
      description:
        "`manifest.json` is one of the files, as stored. With `signed`, the answer is a redirect to the store " +
        "itself, if the store can sign URLs: follow it without the API key.",
      query: z.strictObject({
        signed: z.enum(["true", "false"]).default("false").describe("true: redirect if possible"),
        ...tenantQuery,
      }),
      headers: { Range: z.string().optional().describe("bytes=a-b, bytes=a- or bytes=-n") },
      responses: {
        200: { description: "the file's bytes", content: BINARY },
        206: { description: "the requested range", content: BINARY },
        307: { description: "redirect to a URL in the store, valid for a limited time" },
      },
      errorCodes: {
        ...AMBIGUOUS,
        404: ["artifact_not_found", "file_not_found"],
        416: ["range_not_satisfiable"],
        ...GONE,
      },
      async handle(call) {
        const { params, reply, principal, query, headers } = call;
        const artifact = await requireBytes(ctx, call);
        const file = await findFile(ctx, artifact, params["*"] ?? "");
        if (query.signed === "true" && ctx.store.signDownload && ctx.config.store.signsUrls) {
          return reply.redirect(await ctx.store.signDownload(file.key), 307);
        }
        ctx.waitingRequests.register(call.request, principal, reply);
        if (file.sha256 !== undefined) reply.header("x-checksum-sha256", file.sha256);
        reply.type("application/octet-stream");
        return sendObject(ctx.store, file, headers.Range, reply);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/archive"],
      scope: "user",
      outsideConnectionQueue: true,
      operationId: "getArchive",
      tag: "Artifacts",
      summary: "Download an artifact as a tar archive",
      description:
        "The archive has one folder, named by the artifact's id, with its files and manifest.json.",
      query: z.strictObject(tenantQuery),
      responses: {
        200: {
          description: "the archive",
          content: { "application/x-tar": z.string().meta({ contentEncoding: "binary" }) },
        },
      },
      errorCodes: { ...AMBIGUOUS, 404: ["artifact_not_found"], ...GONE },
      async handle(call) {
        const artifact = await requireBytes(ctx, call);
        const { reply } = call;
        ctx.waitingRequests.register(call.request, call.principal, reply);
        const { artifact_id: id, storage_id: storageId, kind, manifest } = artifact;
        const prefix = prefixOfKind(kind, storageId);
        return reply
          .type("application/x-tar")
          .header("content-disposition", `attachment; filename="${id}.tar"`)
          .send(archiveOf(ctx.store, { id, prefix, manifest, createdAt: artifact.created_at }));
      },
    }),
  ];
}

interface FoundFile {
  key: string;
  sizeBytes: number;
  sha256?: string;
}

/** A file that the manifest lists, or the manifest itself. @throws 404 `file_not_found` */
export async function findFile(
  ctx: Context,
  artifact: ArtifactRow,
  path: string,
): Promise<FoundFile> {
  const isListed = artifact.manifest.files.some((known) => known.path === path);
  if (isListed || path !== MANIFEST_FILE) {
    const { key, size_bytes: sizeBytes, sha256 } = await requireFile(ctx, artifact, path);
    return { key, sizeBytes, sha256 };
  }
  const key = `${prefixOfKind(artifact.kind, artifact.storage_id)}${path}`;
  const sizeBytes = await ctx.store.sizeOf(key);
  if (sizeBytes === undefined) throw new NotFound("file", path, "path");
  return { key, sizeBytes };
}
