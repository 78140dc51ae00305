import { WorkflowNotFoundError } from "@temporalio/client";
import type { Context } from "../context";

/** An activity that a workflow waits for. */
export interface PendingActivity {
  id: string;
  type: string;
  /** Of its last failed try. */
  failure: { type: string; message: string } | undefined;
}

/** What Temporal knows of a workflow's latest run. */
export interface WorkflowState {
  /** Undefined: Temporal does not know it. */
  status: string | undefined;
  activities: PendingActivity[];
  /** Ids of child workflows that it waits for; empty for one that is about to start. */
  children: string[];
  /** Its code is about to run. */
  hasTask: boolean;
  /** Ends this run, and no later one. */
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

/** It waits for nothing but signals. */
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
    // It has closed meanwhile.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}
