import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Puts a file in place of a store directory, so that no dataset manifest can be written during
 * `work`.
 */
export async function withoutDatasets(
  storeDir: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const artifacts = join(storeDir, "artifacts");
  const datasets = join(artifacts, "datasets");
  const aside = `${datasets}.aside`;
  mkdirSync(artifacts, { recursive: true });
  if (existsSync(datasets)) renameSync(datasets, aside);
  writeFileSync(datasets, "in the way");
  try {
    await work();
  } finally {
    rmSync(datasets);
    if (existsSync(aside)) renameSync(aside, datasets);
  }
}
