import type { Principal } from "../../core/accounts/principal";
import { prefixOfKind } from "../../core/artifacts/artifacts";
import type { ManifestFile } from "../../core/artifacts/manifest-schema";
import { ForgeError, NotFound } from "../../core/errors";
import { type ArtifactRow, findArtifacts } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import { requireOne } from "../accounts/one-tenants";
import { tenantFilter } from "../accounts/tenant-filter";

/** As much of a call as names an artifact. */
interface Naming {
  params: Record<string, string>;
  principal: Pick<Principal, "scope" | "userId">;
  query: { user_id?: string | undefined };
}

/** The artifact that the path names, if its caller may see it; also when it is deleted. */
export async function requireArtifact(
  ctx: Context,
  { params, principal, query }: Naming,
): Promise<ArtifactRow> {
  const { artifact_id: id = "" } = params;
  const tenantScope = tenantFilter(principal, query.user_id);
  return requireOne("artifact", id, await findArtifacts(ctx.pool, id, tenantScope));
}

/** The same where its bytes are wanted: @throws 410 when it is deleted. */
export async function requireBytes(ctx: Context, named: Naming): Promise<ArtifactRow> {
  const artifact = await requireArtifact(ctx, named);
  if (artifact.deleted_at === null) return artifact;
  const when = artifact.deleted_at.toISOString();
  const message = `the artifact was deleted at ${when}; its manifest is kept`;
  throw new ForgeError(410, "artifact_deleted", message, "artifact_id");
}

/**
 * One of an artifact's files, with its key in the store. Only what the manifest names: the path is
 * compared, never resolved.
 *
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
