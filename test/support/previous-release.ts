import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleWorkflowCode, DefaultLogger } from "@temporalio/worker";
import { checkoutRoot } from "../../dev/stack/paths";

interface Release {
  dist: string;
  remove(): void;
}

/** A server that is today's but for its workflows. */
function releaseWith(workflows: string): Release {
  const folder = mkdtempSync(join(tmpdir(), "forge-previous-"));
  const dist = join(folder, "dist");
  cpSync(join(checkoutRoot(), "dist"), dist, { recursive: true });
  symlinkSync(join(checkoutRoot(), "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(dist, "workflow-bundle.js"), workflows);
  return { dist, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Workflows that know all changes of their course that today's know, and take none of them. */
export function workflowsBeforeChanges(): string {
  const bundle = readFileSync(join(checkoutRoot(), "dist", "workflow-bundle.js"), "utf8");
  const dormant = bundle.replace(/(TAKEN_CHANGES = )\[[^\]]+\]/, "$1[]");
  if (dormant === bundle) throw new Error("the bundle does not name the changes that it takes");
  return dormant;
}

export const releaseBeforeChanges = (): Release => releaseWith(workflowsBeforeChanges());

/** One with the workflows of test/previous-workflows. */
export async function previousRelease(): Promise<Release> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(checkoutRoot(), "test", "previous-workflows", "index.ts"),
    logger: new DefaultLogger("WARN"),
  });
  return releaseWith(code);
}
