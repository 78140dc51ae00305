import { isDeepStrictEqual } from "node:util";
import { MANIFEST_FILE } from "../../core/artifacts/artifacts";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import { holdsJson, putJson } from "../../platform/store/object-store";
import type { Context } from "../context";
import { findManifest } from "./artifacts";

type Place = Pick<Context, "pool" | "store">;

/**
 * Rewrites the manifest file until it agrees with the registry, or removes it if the artifact is
 * deleted. Call it if a concurrent run completed the job: the file that the caller has just written
 * may be older than the registered manifest. The files are first written where artifacts are made,
 * for example in activities/jobs/finish-job.ts.
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
 * Like `syncManifestFile`, but reads the file first and writes only if it differs. Use it for a
 * file that is nearly always right: the file differs only if a process ended right after it wrote
 * an old manifest. Does nothing if the artifact is deleted.
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
