import { once } from "node:events";
import { Readable } from "node:stream";
import { type Pack, pack } from "tar-stream";
import { MANIFEST_FILE } from "../../core/artifacts/artifacts";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import { isPlainPath } from "../../core/artifacts/plain-path";
import type { ObjectStore } from "./object-store";

export interface Archived {
  id: string;
  /** Where its files lie in the store. */
  prefix: string;
  manifest: Manifest;
  createdAt: Date;
}

/**
 * A tar of an artifact's files below a folder by its id, read as it is sent. It breaks off where a file
 * is not what the manifest says it is, so that nobody takes half an artifact for a whole one.
 */
export function archiveOf(store: ObjectStore, archived: Archived): Readable {
  const archive = pack();
  archive.on("error", () => undefined);
  fill(archive, store, archived).catch((error: Error) => archive.destroy(error));
  // Of another family than Node's own streams.
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
    // It stands in manifests of before names were held to this.
    if (!isPlainPath(path)) throw new Error(`${id} has a file of an unsafe name`);
    const entry = archive.entry({ ...common, name: `${id}/${path}`, size });
    // Whoever reads the archive hears of it from there; unheard here it would end the process.
    entry.on("error", () => undefined);
    if (size > 0) await copy(store.read(`${prefix}${path}`), entry);
    entry.end(null);
  }
  archive.finalize();
}

async function copy(bytes: Readable, entry: ReturnType<Pack["entry"]>): Promise<void> {
  const ended = new AbortController();
  // The archive was given up: its reader has gone.
  entry.once("close", () => ended.abort());
  for await (const chunk of bytes as AsyncIterable<Buffer>) {
    if (ended.signal.aborted) throw new Error("nobody reads the archive any more");
    if (!entry.write(chunk)) await once(entry, "drain", { signal: ended.signal });
  }
}
