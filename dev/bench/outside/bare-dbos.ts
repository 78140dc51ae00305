import { DBOS } from "@dbos-inc/dbos-sdk";
import { failPeer, POOL, serveQueue } from "./serve-peer";

const workflow = DBOS.registerWorkflow(
  async (): Promise<void> => {
    await DBOS.runStep(async () => undefined, { name: "nothing" });
  },
  { name: "bareWorkflow" },
);

/** DBOS workflows with one empty step. The process that starts them also runs them. */
async function main(): Promise<void> {
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: process.argv[2] ?? "",
    systemDatabasePoolSize: POOL,
    logLevel: "error",
    runAdminServer: false,
  });
  await DBOS.launch();
  serveQueue(workflow);
}

main().catch(failPeer);
