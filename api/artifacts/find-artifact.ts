import type { Principal } from "../../core/accounts/permissions";
import { prefixOfKind } from "../../core/artifacts/artifacts";
import type { ManifestFile } from "../../core/artifacts/manifest-schema";
import { ForgeError, NotFound } from "../../core/errors";
import { type ArtifactRow, findArtifacts } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import { tenantFilter } from "../accounts/tenant-filter";
import { requireOne } from "../require-one";

/** The fields of a call that identify an artifact. */
interface ArtifactCall {
  params: Record<string, string>;
  principal: Pick<Principal, "scope" | "userId">;
  query: { user_id?: string | undefined };
}

/** The artifact in the path, if the caller may see it. Includes deleted artifacts. */
export async function requireArtifact(
  ctx: Context,
  { params, principal, query }: ArtifactCall,
): Promise<ArtifactRow> {
  const { artifact_id: id = "" } = params;
  const tenantScope = tenantFilter(principal, query.user_id);
  return requireOne("artifact", id, await findArtifacts(ctx.pool, id, tenantScope));
}

/**
 * Like `requireArtifact`, for routes that read the artifact's bytes. @throws 410 if it is deleted.
 */
export async function requireBytes(ctx: Context, call: ArtifactCall): Promise<ArtifactRow> {
  const artifact = await requireArtifact(ctx, call);
  if (artifact.deleted_at === null) return artifact;
  const when = artifact.deleted_at.toISOString();
  const message = `the artifact was deleted at ${when}; its manifest is kept`;
  throw new ForgeError(410, "artifact_deleted", message, "artifact_id");
}

/**
 * The file whose path in the manifest equals `path`, and its key in the store.
 * @throws 404 `file_not_found`
 */
export async function requireFile(
  ctx: Context,
  { kind, storage_id: id, manifest }: ArtifactRow,
  path: string,
): Promise<ManifestFile & { key: string }> {
  const file = manifest.files.find((known) => known.path === path);
  const key = `${prefixOfKind(kind, id)}${path}`;
  if (!file || (await ctx.store.sizeOf(key)) !== file.size_bytes) {
    throw new NotFound("file", path, "path");
  }
  return { ...file, key };
}
