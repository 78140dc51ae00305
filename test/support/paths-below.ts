import { readdirSync } from "node:fs";
import { join } from "node:path";

/**
 * Every path below a folder that other processes write to. Paths that vanish during the walk are
 * left out.
 */
export function pathsBelow(folder: string, within = ""): string[] {
  return entriesOf(join(folder, within)).flatMap((entry) => {
    const path = join(within, entry.name);
    return entry.isDirectory() ? [path, ...pathsBelow(folder, path)] : [path];
  });
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
