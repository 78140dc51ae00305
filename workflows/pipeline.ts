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
} from "../core/pipelines/workflow";
import { WAKE_SIGNAL } from "../core/workflow-ids";
import { takes } from "./changes";
import { PipelineRun } from "./pipeline-run";
import { reliably } from "./reliably";

const wake = defineSignal(WAKE_SIGNAL);
const approve = defineUpdate<{ step: string; approved: boolean }, [ApproveRequest]>(APPROVE_UPDATE);

/**
 * A pipeline's run, from its first step to its end; a resumed one is another execution.
 *
 * What people decide is written in Postgres, and a nudge tells that there is something to read. So it is
 * all the same whether they decide here or over HTTP, and whether Temporal was there when they did. A
 * cancel pressed in Temporal's UI is handed on as the pipeline's own.
 */
export async function pipelineWorkflow(input: PipelineWorkflowInput): Promise<PipelineEnd> {
  let wakes = 0;
  const onWake = (): void => {
    wakes += 1;
  };
  setHandler(wake, onWake);
  setHandler(approve, (request) =>
    reliably((activities) => activities.decideStep({ ...input, request })).finally(onWake),
  );
  CancellationScope.current().cancelRequested.catch(async () => {
    await CancellationScope.nonCancellable(() =>
      reliably((activities) => activities.cancelPipeline(input)),
    );
    onWake();
  });

  const end = await CancellationScope.nonCancellable(async () => {
    for (let last: PipelineEnd | undefined; ; ) {
      const heard = wakes;
      const end = await new PipelineRun(input, () => wakes).toItsEnd();
      await condition(allHandlersFinished);
      if (end.status === "superseded") continue;
      // The end that it had, where this was only a look whether there is more.
      last = end.status === "none" && last && takes("lastEndCounts") ? last : end;
      // Resumed between its last write and now, perhaps.
      if (wakes === heard) return last;
    }
  });
  if (end.status === "failed") {
    throw ApplicationFailure.nonRetryable(`pipeline failed: ${end.code}`, end.code);
  }
  return end;
}
