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
  type RunInput,
} from "../core/pipelines/workflow";
import { WAKE_SIGNAL } from "../core/workflow-ids";
import { localFirst } from "./activity-proxies";
import { isPatched } from "./patches";
import { PipelineRun } from "./pipeline-run";

const wake = defineSignal(WAKE_SIGNAL);
const approve = defineUpdate<{ step: string; approved: boolean }, [ApproveRequest]>(APPROVE_UPDATE);

/**
 * Runs a pipeline from its first step to its end. Resuming an ended pipeline usually starts another
 * execution of this workflow.
 *
 * Postgres stores all approvals and cancellations, and the wake signal tells the workflow to read
 * them. So an approval or cancellation has the same effect if it is sent over HTTP or through
 * Temporal. The HTTP API accepts both even while Temporal is down. Cancelling the workflow in
 * Temporal's UI cancels the pipeline.
 */
export async function pipelineWorkflow(input: PipelineWorkflowInput): Promise<PipelineEnd> {
  let wakes = 0;
  const onWake = (): void => {
    wakes += 1;
  };
  let current: PipelineRun | undefined;
  const ofRun = (): RunInput => ({ ...input, run: current?.run });
  setHandler(wake, onWake);
  setHandler(approve, (request) =>
    localFirst((activities) => activities.decideStep({ ...ofRun(), request })).finally(onWake),
  );
  CancellationScope.current().cancelRequested.catch(async () => {
    await CancellationScope.nonCancellable(() =>
      localFirst((activities) => activities.cancelPipeline(ofRun())),
    );
    onWake();
  });

  const end = await CancellationScope.nonCancellable(async () => {
    for (let last: PipelineEnd | undefined; ; ) {
      const wakesBefore = wakes;
      current = new PipelineRun(input, () => wakes);
      const end = await current.execute();
      await condition(allHandlersFinished);
      if (end.status === "superseded") continue;
      // The status `none` means: a wake signal arrived, but no other run has begun. In this case,
      // keep the end of the last run.
      last = end.status === "none" && last && isPatched("lastEndCounts") ? last : end;
      // If a wake signal came during the run, look for another run: the signal may mean that the
      // pipeline was resumed after the run's last write.
      if (wakes === wakesBefore) return last;
    }
  });
  if (end.status === "failed") {
    throw ApplicationFailure.nonRetryable(`pipeline failed: ${end.code}`, end.code);
  }
  return end;
}
