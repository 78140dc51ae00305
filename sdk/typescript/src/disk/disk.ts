import type { OnProgress } from "../progress.ts";
import type { OnCheck, Verification } from "../verification.ts";

/** Returns the bytes of an artifact's file by its path. */
type Content = (path: string) => AsyncIterable<Uint8Array>;

export interface Pulled {
  directory: string;
  fetched: string[];
  kept: string[];
  /** The manifest's `verified`. False: the control plane could not read some of the files. */
  verified: boolean;
}

/** File operations on a disk. */
export interface Disk {
  /** Opens a file for reading. Also returns the name of the file. */
  open(path: string): Promise<{ blob: Blob; filename: string }>;
  /** Writes a file. It gets its final name after all data has arrived. */
  save(target: string, chunks: AsyncIterable<Uint8Array>): Promise<void>;
  /** Downloads the files that are missing or incorrect, then writes the manifest. */
  pull(
    manifest: object,
    content: Content,
    directory: string,
    onProgress?: OnProgress,
  ): Promise<Pulled>;
  /** Compares the files in a directory with a manifest. */
  verify(
    artifactId: string,
    manifest: object,
    directory: string,
    onCheck?: OnCheck,
  ): Promise<Verification>;
}
