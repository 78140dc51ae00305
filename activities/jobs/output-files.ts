import { MANIFEST_FILE } from "../../core/artifacts/artifacts";
import { isPlainPath } from "../../core/artifacts/plain-path";
import {
  type ObjectStore,
  type SizeAndChecksum,
  StoreUnavailable,
} from "../../platform/store/object-store";
import type { AttemptFile } from "../../services/jobs/attempt-files";
import type { CompletionFacts } from "../../services/jobs/complete-job";

/**
 * Moves an attempt's uploads from the folder of its generated artifact id (`from`) to the
 * artifact's final folder (`to`). If the worker chose the artifact's id, that id is the name of the
 * final folder, unless another artifact already has a folder of that name. In all other cases, the
 * two folders are the same. Idempotent: skips files that were moved before.
 */
export async function promoteOutput(store: ObjectStore, from: string, to: string): Promise<void> {
  if (from === to) return;
  for (const { path } of await store.list(from)) {
    if (await store.move(`${from}${path}`, `${to}${path}`)) continue;
    // If another process has already moved the file, continue. If the file is still at its old
    // place, it can't be moved, for example because a folder has the target's name.
    if ((await store.sizeOf(`${from}${path}`)) !== undefined) {
      throw new Error(`${from}${path} can't be moved to ${to}`);
    }
  }
}

interface OutputFile extends SizeAndChecksum {
  path: string;
}

/** Files uploaded through the API, by path, with the checksum measured at upload. */
type UploadedFiles = Map<string, AttemptFile>;

/**
 * Returns the files that the attempt uploaded through the API.
 * @throws StoreUnavailable while an upload is still being moved to its final location: the file
 *   could change after the manifest is written.
 */
export function uploadedFiles({ job_id: jobId, uploaded }: CompletionFacts): UploadedFiles {
  const moving = uploaded.find((file) => file.is_moving);
  if (moving) {
    const message = `"${moving.path}" of ${jobId} is still being moved to its final location`;
    throw new StoreUnavailable(message);
  }
  return new Map(uploaded.map((file) => [file.path, file]));
}

/**
 * Lists an artifact's files with checksums. Uses the stored checksums of files uploaded through the
 * API, and reads only the other files.
 * @throws StoreUnavailable if an uploaded file is missing, or a listed file disappears: the store
 * is not fully available, or the files still change.
 */
export async function measureFiles(
  store: ObjectStore,
  uploaded: UploadedFiles,
  prefix: string,
  signal: AbortSignal,
): Promise<OutputFile[]> {
  const files: OutputFile[] = [];
  const stored = await store.list(prefix);
  const paths = new Set(stored.map(({ path }) => path));
  for (const { path, is_confirmed: isConfirmed } of uploaded.values()) {
    if (isConfirmed && !paths.has(path))
      throw new StoreUnavailable(`${prefix}${path} is not in the store`);
  }
  for (const { path, sizeBytes } of stored) {
    signal.throwIfAborted();
    // Skip the manifest, which Forge writes, and names that can't be downloaded or unpacked safely.
    if (path === MANIFEST_FILE || !isPlainPath(path)) continue;
    const known = uploaded.get(path);
    const sha256 = known?.is_confirmed && known.size_bytes === sizeBytes ? known.sha256 : null;
    const measured = sha256 ? { sizeBytes, sha256 } : await store.measure(`${prefix}${path}`);
    if (!measured) throw new StoreUnavailable(`${prefix}${path} has disappeared while it was read`);
    files.push({ path, ...measured });
  }
  return files;
}
