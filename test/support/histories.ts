import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { WorkflowHandle } from "@temporalio/client";
import { historyToJSON } from "@temporalio/common/lib/proto-utils";
import { Worker } from "@temporalio/worker";
import { checkoutRoot } from "../../dev/stack/paths";
import { workflowsBeforeChanges } from "./previous-release";

/** Has a folder for each release. The folders of earlier releases never change. */
const DIRECTORY = join(checkoutRoot(), "test", "histories");
const THIS_RELEASE = (
  JSON.parse(readFileSync(join(checkoutRoot(), "package.json"), "utf8")) as { version: string }
).version;
const bundle = { codePath: join(checkoutRoot(), "dist", "workflow-bundle.js") };

export const recordedHistories = (): string[] =>
  readdirSync(DIRECTORY, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".json"))
    .sort();

/** The names of this release's histories. */
export const recordedNames = (): string[] =>
  recordedHistories()
    .filter((file) => file.startsWith(`${THIS_RELEASE}/`))
    .map((file) => basename(file, ".json"))
    .sort();

export const readHistory = (file: string): unknown =>
  JSON.parse(readFileSync(join(DIRECTORY, file), "utf8"));

/** Replays this history with today's workflow code. Throws if the code does not match it. */
export async function replay(history: unknown, workflowId: string): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle: bundle }, history, workflowId);
}

/**
 * Replays recorded histories with one worker, which is much faster than one worker for each.
 * @returns the errors by file.
 */
export async function replayRecorded(files: string[]): Promise<Map<string, Error | undefined>> {
  const histories = files.map((file) => ({ workflowId: file, history: readHistory(file) }));
  const results = Worker.runReplayHistories({ workflowBundle: bundle }, histories);
  const errors = new Map<string, Error | undefined>();
  for await (const { workflowId, error } of results) errors.set(workflowId, error);
  return errors;
}

/**
 * Replays a workflow's history twice: with today's code, and with today's code in which all patches
 * are inactive, like the code of an earlier release. With RECORD_HISTORIES=1, also stores the
 * history under this name, so that later releases replay it. Throws if this release already has a
 * history of that name.
 *
 * @returns the history as text with readable payloads.
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

/** Drops the fields that identify the recording machine. */
function withoutMachine(key: string, value: unknown): unknown {
  return key === "stackTrace" || key === "identity" ? undefined : value;
}

function decoded(json: string): string {
  return json.replaceAll(/"data": ?"([^"]*)"/g, (_all, data: string) =>
    Buffer.from(data, "base64").toString("utf8"),
  );
}
