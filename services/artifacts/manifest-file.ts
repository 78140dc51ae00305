import { isDeepStrictEqual } from "node:util";
import { MANIFEST_FILE } from "../../core/artifacts/artifacts";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import { holdsJson, putJson } from "../../platform/store/object-store";
import type { Context } from "../context";
import { findManifest } from "./artifacts";

type Place = Pick<Context, "pool" | "store">;

/**
 * A concurrent run completed the job, so the manifest file just written may be older than the
 * registry's version, or of a deleted artifact. Rewrites it until it agrees with the registry.
 */
export async function syncManifestFile(
  { pool, store }: Place,
  storageId: string,
  prefix: string,
): Promise<void> {
  const key = `${prefix}${MANIFEST_FILE}`;
  for (let written: Manifest | undefined; ; ) {
    const registered = await findManifest(pool, storageId);
    if (!registered) return;
    if (registered.deleted_at !== null) return await store.remove(key);
    if (isDeepStrictEqual(registered.manifest, written)) return;
    await putJson(store, key, registered.manifest);
    written = registered.manifest;
  }
}

/**
 * Like `syncManifestFile`, for a file that is nearly always right: it differs only if a process
 * ended right after it wrote an old manifest.
 */
export async function checkManifestFile(
  place: Place,
  storageId: string,
  prefix: string,
): Promise<void> {
  const registered = await findManifest(place.pool, storageId);
  if (!registered || registered.deleted_at !== null) return;
  const key = `${prefix}${MANIFEST_FILE}`;
  if (await holdsJson(place.store, key, registered.manifest)) return;
  await syncManifestFile(place, storageId, prefix);
}
