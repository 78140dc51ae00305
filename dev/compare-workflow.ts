import type { Client } from "@temporalio/client";
import { waitFor } from "./stack/wait";

/**
 * I6: a workflow's status is as its row wants it, within 60 s.
 *
 * @param what is waited for.
 * @returns one line where it is not.
 */
export async function compareWorkflow(
  temporal: Client,
  workflowId: string,
  what: string,
  isRight: (status: string) => boolean,
): Promise<string[]> {
  const agrees = async (): Promise<boolean> =>
    isRight((await temporal.workflow.getHandle(workflowId).describe()).status.name);
  try {
    await waitFor(what, agrees, { timeoutMs: 60_000 });
    return [];
  } catch (error) {
    return [`I6 ${String(error)}`];
  }
}
