import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { WorkflowHandle } from "@temporalio/client";
import { historyToJSON } from "@temporalio/common/lib/proto-utils";
import { Worker } from "@temporalio/worker";
import { checkoutRoot } from "../../dev/stack/paths";

const DIRECTORY = join(checkoutRoot(), "test", "histories");
const bundle = { codePath: join(checkoutRoot(), "dist", "workflow-bundle.js") };

export const recordedHistories = (): string[] =>
  readdirSync(DIRECTORY)
    .filter((file) => file.endsWith(".json"))
    .sort();

export const readHistory = (file: string): unknown =>
  JSON.parse(readFileSync(join(DIRECTORY, file), "utf8"));

/** Fails where today's workflow code would not have written this history. */
export async function replay(history: unknown, workflowId: string): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle: bundle }, history, workflowId);
}

/**
 * A workflow's history as text with its payloads readable, after it was replayed. With
 * RECORD_HISTORIES=1 it is kept under this name, for the code of tomorrow.
 */
export async function inspectHistory(name: string, handle: WorkflowHandle): Promise<string> {
  const history = await handle.fetchHistory();
  const json = historyToJSON(history);
  if (process.env.RECORD_HISTORIES) {
    const kept = JSON.stringify(JSON.parse(json, withoutMachine), null, 1);
    writeFileSync(join(DIRECTORY, `${name}.json`), `${kept}\n`);
  }
  await replay(history, handle.workflowId);
  return decoded(json);
}

/** Drops what only tells on which machine a history was recorded. */
function withoutMachine(key: string, value: unknown): unknown {
  return key === "stackTrace" || key === "identity" ? undefined : value;
}

function decoded(json: string): string {
  return json.replaceAll(/"data": ?"([^"]*)"/g, (_all, data: string) =>
    Buffer.from(data, "base64").toString("utf8"),
  );
}
