import type { OnProgress } from "../progress.ts";
import type { OnCheck, Verification } from "../verification.ts";

/** The bytes of an artifact's file, by its path. */
type Content = (path: string) => AsyncIterable<Uint8Array>;

export interface Pulled {
  directory: string;
  fetched: string[];
  kept: string[];
  /** As the manifest has it; false: there are files that the control plane never saw. */
  verified: boolean;
}

/** What is done with files on a disk. */
export interface Disk {
  /** A file to be read, and its name. */
  open(path: string): Promise<{ blob: Blob; filename: string }>;
  /** Writes a file, which takes its name only when all has arrived. */
  save(target: string, chunks: AsyncIterable<Uint8Array>): Promise<void>;
  /** Fetches what is not there yet, and the manifest last. */
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
