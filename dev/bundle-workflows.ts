import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bundleWorkflowCode } from "@temporalio/worker";

/** Bundles the workflows at build time, so that a server starts without webpack. */
async function main(): Promise<void> {
  const dist = join(__dirname, "..");
  const silent = () => undefined;
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(dist, "workflows", "index.js"),
    logger: {
      log: silent,
      trace: silent,
      debug: silent,
      info: silent,
      warn: console.warn,
      error: console.error,
    },
  });
  await writeFile(join(dist, "workflow-bundle.js"), code);
}

void main();
