import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleWorkflowCode, DefaultLogger } from "@temporalio/worker";
import { checkoutRoot } from "../../dev/stack/paths";

/** A server that is today's but for its workflows, which are those of test/previous-workflows. */
export async function previousRelease(): Promise<{ dist: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), "forge-previous-"));
  const dist = join(folder, "dist");
  cpSync(join(checkoutRoot(), "dist"), dist, { recursive: true });
  symlinkSync(join(checkoutRoot(), "node_modules"), join(folder, "node_modules"));
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(checkoutRoot(), "test", "previous-workflows", "index.ts"),
    logger: new DefaultLogger("WARN"),
  });
  writeFileSync(join(dist, "workflow-bundle.js"), code);
  return { dist, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
