import { join } from "node:path";
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
} from "@temporalio/worker";
import { BARE_TASK_QUEUE } from "./bare-temporal";
import { failPeer } from "./serve-peer";

/**
 * A Temporal worker with the settings of Forge's worker (activities/worker.ts). Notifies its parent
 * when ready.
 */
async function main(): Promise<void> {
  const [address = ""] = process.argv.slice(2);
  const logger = new DefaultLogger("ERROR");
  Runtime.install({ logger });
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }),
    taskQueue: BARE_TASK_QUEUE,
    workflowBundle: await bundleWorkflowCode({
      workflowsPath: join(__dirname, "bare-workflow.js"),
      logger,
    }),
    activities: { now: async () => performance.timeOrigin + performance.now() },
    maxConcurrentActivityTaskExecutions: 50,
    maxConcurrentLocalActivityExecutions: 50,
  });
  process.send?.("ready");
  await worker.run();
}

process.on("disconnect", () => process.exit());

main().catch(failPeer);
