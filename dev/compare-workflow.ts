import type { Client } from "@temporalio/client";
import { waitFor } from "./stack/wait";

/**
 * Checks invariant I6 (docs/architecture.md): within 60 s, the status of a workflow agrees with
 * that of its job, pipeline or deployment in Postgres.
 *
 * @param what describes the expected state.
 * @returns one line if the status does not agree, else none.
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
