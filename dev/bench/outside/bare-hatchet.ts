import { HatchetClient } from "@hatchet-dev/typescript-sdk";
import { failPeer, serveQueue, WORKERS } from "./serve-peer";

/**
 * Hatchet tasks. They run in this process, which connects to the Hatchet server that environment
 * variables (HATCHET_CLIENT_…) specify.
 */
async function main(): Promise<void> {
  const hatchet = HatchetClient.init();
  const task = hatchet.task({ name: "audit", fn: async () => ({}) });
  const worker = await hatchet.worker("bench", { workflows: [task], slots: WORKERS });
  worker.start().catch(failPeer);
  await worker.waitUntilReady();
  serveQueue(() => task.run({ dataset_uri: "s3://bucket/data.parquet" }));
}

main().catch(failPeer);
