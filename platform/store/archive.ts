import { once } from "node:events";
import { Readable } from "node:stream";
import { type Pack, pack } from "tar-stream";
import { MANIFEST_FILE } from "../../core/artifacts/artifacts";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import { isPlainPath } from "../../core/artifacts/plain-path";
import type { ObjectStore } from "./object-store";

export interface Archived {
  id: string;
  /** Key prefix of the artifact's files in the store. */
  prefix: string;
  manifest: Manifest;
  createdAt: Date;
}

/**
 * Streams a tar of an artifact's files, in a folder named by the artifact's id. The stream fails at
 * a file that is missing or does not have the size in the manifest, so that a client can't mistake
 * a partial archive for a complete one.
 */
export function archiveOf(store: ObjectStore, archived: Archived): Readable {
  const archive = pack();
  archive.on("error", () => undefined);
  fill(archive, store, archived).catch((error: Error) => archive.destroy(error));
  // Convert the stream: tar-stream does not use Node's own stream classes.
  return Readable.from(archive as AsyncIterable<Buffer>, { objectMode: false });
}

async function fill(
  archive: Pack,
  store: ObjectStore,
  { id, prefix, ...what }: Archived,
): Promise<void> {
  const common = { mode: 0o644, mtime: what.createdAt };
  const manifest = `${JSON.stringify(what.manifest, null, 2)}\n`;
  archive.entry({ ...common, name: `${id}/${MANIFEST_FILE}` }, manifest);
  for (const { path, size_bytes: size } of what.manifest.files) {
    // Older manifests may have unsafe names.
    if (!isPlainPath(path)) throw new Error(`${id} has a file with an unsafe name`);
    const entry = archive.entry({ ...common, name: `${id}/${path}`, size });
    // The archive's reader gets the error. Without this listener, the error would end the process.
    entry.on("error", () => undefined);
    if (size > 0) await copy(store.read(`${prefix}${path}`), entry);
    entry.end(null);
  }
  archive.finalize();
}

async function copy(bytes: Readable, entry: ReturnType<Pack["entry"]>): Promise<void> {
  const ended = new AbortController();
  // The entry closes when the reader closes the archive. Then stop waiting for `drain`.
  entry.once("close", () => ended.abort());
  for await (const chunk of bytes as AsyncIterable<Buffer>) {
    if (ended.signal.aborted) throw new Error("the archive's reader has closed it");
    if (!entry.write(chunk)) await once(entry, "drain", { signal: ended.signal });
  }
}
