import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";

/** Downloads a URL to a file. @throws Error, and writes nothing, if the SHA-256 differs. */
export async function downloadChecked(url: string, sha256: string, file: string): Promise<void> {
  const response = await fetch(url, { signal: AbortSignal.timeout(120_000) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const content = Buffer.from(await response.arrayBuffer());
  const found = createHash("sha256").update(content).digest("hex");
  if (found !== sha256) throw new Error(`its SHA-256 is ${found}, not the pinned ${sha256}`);
  await writeFile(file, content);
}
