import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { WorkflowHandle } from "@temporalio/client";
import { historyToJSON } from "@temporalio/common/lib/proto-utils";
import { Worker } from "@temporalio/worker";
import { checkoutRoot } from "../../dev/stack/paths";
import { workflowsBeforeChanges } from "./previous-release";

/** A folder for each release, in which nothing is changed any more. */
const DIRECTORY = join(checkoutRoot(), "test", "histories");
const THIS_RELEASE = (
  JSON.parse(readFileSync(join(checkoutRoot(), "package.json"), "utf8")) as { version: string }
).version;
const bundle = { codePath: join(checkoutRoot(), "dist", "workflow-bundle.js") };

export const recordedHistories = (): string[] =>
  readdirSync(DIRECTORY, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".json"))
    .sort();

/** Of this release, by their names. */
export const recordedWays = (): string[] =>
  recordedHistories()
    .filter((file) => file.startsWith(`${THIS_RELEASE}/`))
    .map((file) => basename(file, ".json"))
    .sort();

export const readHistory = (file: string): unknown =>
  JSON.parse(readFileSync(join(DIRECTORY, file), "utf8"));

/** Fails where today's workflow code would not have written this history. */
export async function replay(history: unknown, workflowId: string): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle: bundle }, history, workflowId);
}

/** Replays recorded histories by one worker, which takes much less time than one for each. What is wrong, by file. */
export async function replayRecorded(files: string[]): Promise<Map<string, Error | undefined>> {
  const histories = files.map((file) => ({ workflowId: file, history: readHistory(file) }));
  const results = Worker.runReplayHistories({ workflowBundle: bundle }, histories);
  const errors = new Map<string, Error | undefined>();
  for await (const { workflowId, error } of results) errors.set(workflowId, error);
  return errors;
}

/**
 * A workflow's history as text with its payloads readable, after it was replayed: by today's code, and by
 * that of a release before, which knows today's changes and takes none. With RECORD_HISTORIES=1 it is kept
 * under this name, for the code of tomorrow, unless this release has one of that name.
 */
export async function inspectHistory(name: string, handle: WorkflowHandle): Promise<string> {
  const history = await handle.fetchHistory();
  const json = historyToJSON(history);
  if (process.env.RECORD_HISTORIES) {
    const kept = JSON.stringify(JSON.parse(json, withoutMachine), null, 1);
    const folder = join(DIRECTORY, THIS_RELEASE);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${name}.json`), `${kept}\n`, { flag: "wx" });
  }
  await replay(history, handle.workflowId);
  const before = { workflowBundle: { code: workflowsBeforeChanges() } };
  await Worker.runReplayHistory(before, history, handle.workflowId);
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
