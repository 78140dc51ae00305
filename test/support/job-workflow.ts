import type { WorkflowHandle } from "@temporalio/client";
import { attemptActivityId, jobWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

type Place = Pick<Forge, "ctx">;

/** Temporal's PENDING_ACTIVITY_STATE_STARTED. */
const STARTED = 2;

export const workflowOf = ({ ctx }: Place, jobId: string): WorkflowHandle =>
  ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));

/** Whether a Temporal worker has taken the activity in which the workflow waits for attempt 1. */
export async function isAwaited(forge: Place, jobId: string): Promise<boolean> {
  const { raw } = await workflowOf(forge, jobId).describe();
  const isStarted = raw.pendingActivities?.some(
    ({ activityId, state }) => activityId === attemptActivityId(1) && state === STARTED,
  );
  return isStarted === true;
}

export const untilAwaited = (forge: Place, jobId: string): Promise<unknown> =>
  waitFor("the workflow to wait for its attempt", () => isAwaited(forge, jobId));

/** Waits until all outbox entries of the job have been delivered to Temporal. */
export const untilDelivered = ({ ctx }: Place, jobId: string): Promise<unknown> =>
  waitFor("the outbox to be empty", async () => {
    return (await all(ctx.pool, "select from outbox where job_id = $1", [jobId])).length === 0;
  });
