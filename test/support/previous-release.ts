import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleWorkflowCode, DefaultLogger } from "@temporalio/worker";
import { checkoutRoot } from "../../dev/stack/paths";

interface Release {
  dist: string;
  remove(): void;
}

/** Makes a copy of today's server with the given workflows. */
function releaseWith(workflows: string): Release {
  const folder = mkdtempSync(join(tmpdir(), "forge-previous-"));
  const dist = join(folder, "dist");
  cpSync(join(checkoutRoot(), "dist"), dist, { recursive: true });
  symlinkSync(join(checkoutRoot(), "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(dist, "workflow-bundle.js"), workflows);
  return { dist, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Returns a bundle of today's workflow code in which no patch is active. */
export function workflowsBeforeChanges(): string {
  const bundle = readFileSync(join(checkoutRoot(), "dist", "workflow-bundle.js"), "utf8");
  const dormant = bundle.replace(/(ACTIVE_PATCHES = )\[[^\]]+\]/, "$1[]");
  if (dormant === bundle) throw new Error("the bundle has no patch calls to replace");
  return dormant;
}

export const releaseBeforeChanges = (): Release => releaseWith(workflowsBeforeChanges());

/** A server with the workflows of test/previous-workflows. */
export async function previousRelease(): Promise<Release> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(checkoutRoot(), "test", "previous-workflows", "index.ts"),
    logger: new DefaultLogger("WARN"),
  });
  return releaseWith(code);
}
