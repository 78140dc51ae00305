import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  defineSignal,
  defineUpdate,
  setHandler,
} from "@temporalio/workflow";
import {
  APPROVE_UPDATE,
  type ApproveRequest,
  type PipelineEnd,
  type PipelineWorkflowInput,
} from "../../core/pipelines/workflow";
import { WAKE_SIGNAL } from "../../core/workflow-ids";
import { localFirst } from "../../workflows/activity-proxies";
import { PipelineRun } from "./pipeline-run";

const wake = defineSignal(WAKE_SIGNAL);
const approve = defineUpdate<{ step: string; approved: boolean }, [ApproveRequest]>(APPROVE_UPDATE);

/**
 * A pipeline's run, from its first step to its end. A resumed run is another execution.
 *
 * Approvals and cancels are stored in Postgres, and a signal wakes the workflow to read them. So
 * approvals may arrive by a Temporal update or over HTTP, and over HTTP even while Temporal is
 * down. A cancel in Temporal's UI cancels the pipeline.
 */
export async function pipelineWorkflow(input: PipelineWorkflowInput): Promise<PipelineEnd> {
  let wakes = 0;
  const onWake = (): void => {
    wakes += 1;
  };
  setHandler(wake, onWake);
  setHandler(approve, (request) =>
    localFirst((activities) => activities.decideStep({ ...input, request })).finally(onWake),
  );
  CancellationScope.current().cancelRequested.catch(async () => {
    await CancellationScope.nonCancellable(() =>
      localFirst((activities) => activities.cancelPipeline(input)),
    );
    onWake();
  });

  const end = await CancellationScope.nonCancellable(async () => {
    for (;;) {
      const wakesBefore = wakes;
      const end = await new PipelineRun(input, () => wakes).toItsEnd();
      await condition(allHandlersFinished);
      // The pipeline may have been resumed since `toItsEnd` last wrote to it.
      if (wakes === wakesBefore) return end;
    }
  });
  if (end.status === "failed") {
    throw ApplicationFailure.nonRetryable(`pipeline failed: ${end.code}`, end.code);
  }
  return end;
}
