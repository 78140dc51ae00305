import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Replaces a directory of the store with a file, so that no manifest of this kind of artifact can
 * be written during `work`.
 */
export async function withoutArtifacts(
  storeDir: string,
  directory: "datasets" | "checkpoints",
  work: () => Promise<unknown>,
): Promise<void> {
  const artifacts = join(storeDir, "artifacts");
  const path = join(artifacts, directory);
  const aside = `${path}.aside`;
  mkdirSync(artifacts, { recursive: true });
  if (existsSync(path)) renameSync(path, aside);
  writeFileSync(path, "in the way");
  try {
    await work();
  } finally {
    rmSync(path);
    if (existsSync(aside)) renameSync(aside, path);
  }
}
