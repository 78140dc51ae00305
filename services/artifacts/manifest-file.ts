import { isDeepStrictEqual } from "node:util";
import { MANIFEST_FILE } from "../../core/artifacts/artifacts";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import { holdsJson, putJson } from "../../platform/store/object-store";
import type { Context } from "../context";
import { findManifest } from "./artifacts";

type Stores = Pick<Context, "pool" | "store">;

const keyOf = (prefix: string): string => `${prefix}${MANIFEST_FILE}`;

/** Writes a manifest to the artifact's folder. */
export const putManifestFile = (
  { store }: Pick<Context, "store">,
  prefix: string,
  manifest: Manifest,
): Promise<void> => putJson(store, keyOf(prefix), manifest);

/**
 * Rewrites the manifest file until it agrees with the registry, or removes it if the artifact is
 * deleted. Call it after `putManifestFile` if another run of the activity completed the job: the
 * file that the caller wrote may be older than the registered manifest.
 */
export async function syncManifestFile(
  ctx: Stores,
  storageId: string,
  prefix: string,
): Promise<void> {
  for (let written: Manifest | undefined; ; ) {
    const registered = await findManifest(ctx.pool, storageId);
    if (!registered) return;
    if (registered.deleted_at !== null) return await ctx.store.remove(keyOf(prefix));
    if (isDeepStrictEqual(registered.manifest, written)) return;
    await putManifestFile(ctx, prefix, registered.manifest);
    written = registered.manifest;
  }
}

/**
 * Reads the manifest file, and calls `syncManifestFile` only if it differs from the registered
 * manifest. Use this if the file is nearly always right: it differs only if a process ended right
 * after it wrote an old manifest. Does nothing if the artifact is deleted.
 */
export async function checkManifestFile(
  ctx: Stores,
  storageId: string,
  prefix: string,
): Promise<void> {
  const registered = await findManifest(ctx.pool, storageId);
  if (!registered || registered.deleted_at !== null) return;
  if (await holdsJson(ctx.store, keyOf(prefix), registered.manifest)) return;
  await syncManifestFile(ctx, storageId, prefix);
}
