import { MANIFEST_FILE } from "../../core/artifacts/artifacts";
import { isPlainPath } from "../../core/artifacts/plain-path";
import { type Measured, type ObjectStore, StoreAway } from "../../platform/store/object-store";
import type { AttemptFile } from "../../services/jobs/attempt-files";
import type { CompletionFacts } from "../../services/jobs/completion";

/**
 * What an attempt has uploaded lies under the id that was minted for it. A worker that gave its artifact
 * another id gets it moved to the folder of that name, file by file, unless another tenant has that folder:
 * what is moved already is not found again.
 */
export async function promoteOutput(store: ObjectStore, from: string, to: string): Promise<void> {
  if (from === to) return;
  for (const { path } of await store.list(from)) {
    if (await store.move(`${from}${path}`, `${to}${path}`)) continue;
    // Another process may have moved it; what is still there is in the way of something.
    if ((await store.sizeOf(`${from}${path}`)) !== undefined) {
      throw new Error(`${from}${path} can't be moved to ${to}`);
    }
  }
}

export interface OutputFile extends Measured {
  path: string;
}

/** What came through us: by path, as it was measured then. */
export type UploadedFiles = Map<string, AttemptFile>;

/**
 * @throws StoreAway while one of them is still on its way to its place: its bytes would change behind the
 * manifest's back.
 */
export function uploadedFiles({ job_id: jobId, uploaded }: CompletionFacts): UploadedFiles {
  const moving = uploaded.find((file) => file.is_moving);
  if (moving) throw new StoreAway(`"${moving.path}" of ${jobId} is still being put in its place`);
  return new Map(uploaded.map((file) => [file.path, file]));
}

/**
 * The files of an artifact's folder, with checksums. One that came through us was measured when it came;
 * only others are read.
 *
 * @throws StoreAway where one that came is not there: then the folder is not, or not yet again.
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
  for (const { path, is_sure: isSure } of uploaded.values()) {
    if (isSure && !paths.has(path)) throw new StoreAway(`${prefix}${path} is not in the store`);
  }
  for (const { path, sizeBytes } of stored) {
    signal.throwIfAborted();
    // A name that could not be downloaded or unpacked safely is no file of an artifact.
    if (path === MANIFEST_FILE || !isPlainPath(path)) continue;
    const noted = uploaded.get(path);
    const sha256 = noted?.is_sure && noted.size_bytes === sizeBytes ? noted.sha256 : null;
    const measured =
      sha256 === null ? await store.measure(`${prefix}${path}`) : { sizeBytes, sha256 };
    if (measured) files.push({ path, ...measured });
  }
  return files;
}
