import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { historyToJSON } from "@temporalio/common/lib/proto-utils";
import { checkoutRoot } from "../../dev/stack/paths";
import type { Context } from "../../services/context";

interface Event {
  eventTime: string;
  eventType: string;
}

const MAX_WORKFLOWS = 5;
const LAST_EVENTS = 8;

/**
 * The running test file's folder under TEST_EVIDENCE_DIR (dev/test/jest.ts); undefined if that is
 * not set.
 */
function folderOfFile(): string | undefined {
  const { TEST_EVIDENCE_DIR: root } = process.env;
  const { testPath } = expect.getState();
  if (!root || !testPath) return undefined;
  const file = relative(join(checkoutRoot(), "test"), testPath);
  const folder = join(root, file.replace(/\.test\.ts$/, ""));
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Copies the logs of a test file's servers, because the servers' home is removed afterwards. */
export function keepLogs(home: string): void {
  const folder = folderOfFile();
  const logs = join(home, "logs");
  if (folder && existsSync(logs)) cpSync(logs, folder, { recursive: true });
}

/**
 * Describes the open workflows after a failed proof of the invariants: one line per workflow, with
 * its last events. Saves their full histories next to the logs.
 */
export async function openWorkflows({ config, temporal }: Context): Promise<string[]> {
  const query = `TaskQueue = '${config.temporal.taskQueue}' and ExecutionStatus = 'Running'`;
  const folder = folderOfFile();
  const lines: string[] = [];
  for await (const { workflowId, runId } of temporal.workflow.list({ query })) {
    const handle = temporal.workflow.getHandle(workflowId, runId);
    const history = historyToJSON(await handle.fetchHistory());
    const { raw } = await handle.describe();
    if (folder) {
      const name = `${workflowId.replaceAll(":", "-")}.json`;
      writeFileSync(join(folder, name), history);
    }
    const { events } = JSON.parse(history) as { events: Event[] };
    const last = events.slice(-LAST_EVENTS).map(inShort);
    const pending = (raw.pendingActivities ?? []).map(
      ({ activityType, attempt }) => `${activityType?.name} attempt ${attempt}`,
    );
    const task = raw.pendingWorkflowTask ? [`task attempt ${raw.pendingWorkflowTask.attempt}`] : [];
    lines.push(`${workflowId} is open: ${[...last, "pending:", ...pending, ...task].join(", ")}`);
    if (lines.length === MAX_WORKFLOWS) break;
  }
  return lines;
}

/** For example `22:26:53 TASK_STARTED`. */
const inShort = ({ eventTime, eventType }: Event): string =>
  `${eventTime.slice(11, 19)} ${eventType.replaceAll(/EVENT_TYPE_|WORKFLOW_/g, "")}`;
