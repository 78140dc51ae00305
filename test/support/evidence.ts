import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { historyToJSON } from "@temporalio/common/lib/proto-utils";
import { checkoutRoot } from "../../dev/stack/paths";
import type { Context } from "../../infra/context";

const MAX_HISTORIES = 20;

/** The folder of the running test file under TEST_EVIDENCE_DIR (dev/test/jest.ts); undefined without one. */
function folderOfFile(): string | undefined {
  const { TEST_EVIDENCE_DIR: root } = process.env;
  const { testPath } = expect.getState();
  if (!root || !testPath) return undefined;
  const file = relative(join(checkoutRoot(), "test"), testPath);
  const folder = join(root, file.replace(/\.test\.ts$/, ""));
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Keeps the logs of a file's servers after its folder is gone. */
export function keepLogs(home: string): void {
  const folder = folderOfFile();
  if (folder) cpSync(join(home, "logs"), folder, { recursive: true });
}

/** Keeps the histories of workflows that are still open, when a proof has failed. */
export async function keepHistories({ config, temporal }: Context): Promise<void> {
  const folder = folderOfFile();
  if (!folder) return;
  const query = `TaskQueue = '${config.temporal.taskQueue}' and ExecutionStatus = 'Running'`;
  let kept = 0;
  for await (const { workflowId, runId } of temporal.workflow.list({ query })) {
    const history = await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
    const name = `${workflowId.replaceAll(":", "-")}.json`;
    writeFileSync(join(folder, name), historyToJSON(history));
    kept += 1;
    if (kept === MAX_HISTORIES) return;
  }
}
