import { WorkflowNotFoundError } from "@temporalio/client";
import type { Context } from "../context";

export interface PendingActivity {
  id: string;
  type: string;
  /** The failure of the activity's last try. */
  failure: { type: string; message: string } | undefined;
}

/** The state of a workflow's latest run in Temporal. */
export interface WorkflowState {
  /** Undefined if Temporal does not know the workflow. */
  status: string | undefined;
  activities: PendingActivity[];
  /** Ids of pending child workflows. The id is "" for a child that is about to start. */
  children: string[];
  /** Whether a workflow task is pending. */
  hasTask: boolean;
  /** Terminates this run only. Does nothing if the run has closed. */
  terminate(reason: string): Promise<void>;
}

const UNKNOWN: WorkflowState = {
  status: undefined,
  activities: [],
  children: [],
  hasTask: false,
  terminate: async () => undefined,
};

export const isOpen = ({ status }: WorkflowState): boolean => status === "RUNNING";

/**
 * Whether the workflow only waits for signals or timers: no task, activity or child workflow is
 * pending.
 */
export const isIdle = ({ activities, children, hasTask }: WorkflowState): boolean =>
  !hasTask && activities.length === 0 && children.length === 0;

export async function readWorkflow(
  { temporal }: Pick<Context, "temporal">,
  workflowId: string,
): Promise<WorkflowState> {
  try {
    const { status, runId, raw } = await temporal.workflow.getHandle(workflowId).describe();
    return {
      status: status.name,
      activities: (raw.pendingActivities ?? []).map(
        ({ activityId, activityType, lastFailure }) => ({
          id: activityId ?? "",
          type: activityType?.name ?? "",
          failure: lastFailure
            ? {
                type: lastFailure.applicationFailureInfo?.type ?? "",
                message: lastFailure.message ?? "",
              }
            : undefined,
        }),
      ),
      children: (raw.pendingChildren ?? []).map((child) => child.workflowId ?? ""),
      hasTask: Boolean(raw.pendingWorkflowTask),
      terminate: (reason) => endRun(temporal, workflowId, runId, reason),
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return UNKNOWN;
    throw error;
  }
}

async function endRun(
  temporal: Context["temporal"],
  workflowId: string,
  runId: string,
  reason: string,
): Promise<void> {
  try {
    await temporal.workflow.getHandle(workflowId, runId).terminate(reason);
  } catch (error) {
    // WorkflowNotFoundError: the run has already closed, so there is nothing to terminate.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}
