import {
  defineSearchAttributeKey,
  SearchAttributeType,
  WorkflowExecutionAlreadyStartedError,
} from "@temporalio/common";
import { ChildWorkflowFailure, executeChild, workflowInfo } from "@temporalio/workflow";
import type { JobType } from "../core/jobs/job-types";
import { JOB_WORKFLOW, type JobWorkflowInput, SEARCH_ATTRIBUTES } from "../core/jobs/workflow";
import { jobWorkflowId } from "../core/workflow-ids";

const jobTypeKey = defineSearchAttributeKey(SEARCH_ATTRIBUTES.jobType, SearchAttributeType.KEYWORD);
const userIdKey = defineSearchAttributeKey(SEARCH_ATTRIBUTES.userId, SearchAttributeType.KEYWORD);

interface ChildJob {
  input: JobWorkflowInput;
  jobType: JobType;
  userId: string;
  summary: string;
}

/**
 * Runs a job's workflow as a child and waits until the child closes. Read the job's row to learn
 * how the job ended. A failed child does not prove that the job failed: the child may have been
 * terminated, and the reconciler then starts it again.
 * @returns false if another caller had already started the workflow.
 */
export async function runChildJob(job: ChildJob): Promise<boolean> {
  const { input, jobType, userId, summary } = job;
  try {
    await executeChild(JOB_WORKFLOW, {
      workflowId: jobWorkflowId(input.jobId),
      args: [input],
      workflowTaskTimeout: workflowInfo().taskTimeoutMs,
      parentClosePolicy: "ABANDON",
      workflowIdReusePolicy: "REJECT_DUPLICATE",
      staticSummary: summary,
      typedSearchAttributes: [
        { key: jobTypeKey, value: jobType },
        { key: userIdKey, value: userId },
      ],
    });
    return true;
  } catch (error) {
    if (error instanceof ChildWorkflowFailure) return true;
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}
