import type { Pipeline } from "@forge/sdk";
import { Ban, Check, RotateCcw, Wallet } from "lucide-react";
import { useState } from "react";
import { useForge } from "../api/context";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialog";
import { plural } from "../ui/format";
import { useHotkeys } from "../ui/hotkeys";
import { ApproveDialog } from "./approve-dialog";
import { BudgetDialog } from "./budget-dialog";
import { isCancelling, isOver } from "./pipeline-state";
import type { PipelineDialogProps } from "./pipeline-view";
import { ResumeDialog } from "./resume-dialog";
import { usePipelineChange } from "./use-pipeline";

const HOTKEYS = [
  { keys: "a", what: "Approve the waiting step", action: "approve" },
  { keys: "u", what: "Set the budget", action: "budget" },
  { keys: "r", what: "Resume or run again", action: "resume" },
  { keys: "c", what: "Cancel the pipeline", action: "cancel" },
] as const;

/** The actions that the pipeline's state allows. Each has a keyboard shortcut. */
export function PipelineActions({ pipeline }: { pipeline: Pipeline }) {
  const [open, setOpen] = useState<(typeof HOTKEYS)[number]["action"]>();
  const close = (): void => setOpen(undefined);
  const over = isOver(pipeline);
  const can = {
    approve: pipeline.status === "waiting_approval" && !isCancelling(pipeline),
    budget: !over,
    resume: over,
    cancel: !over && !isCancelling(pipeline),
  };
  useHotkeys(
    HOTKEYS.filter(({ action }) => can[action]).map(({ action, ...hotkey }) => ({
      ...hotkey,
      run: () => setOpen(action),
    })),
  );
  return (
    <>
      {can.cancel && (
        <Button kind="danger" icon={<Ban size={14} />} hotkey="c" onClick={() => setOpen("cancel")}>
          Cancel
        </Button>
      )}
      {can.budget && (
        <Button icon={<Wallet size={14} />} hotkey="u" onClick={() => setOpen("budget")}>
          Budget
        </Button>
      )}
      {can.resume && (
        <Button icon={<RotateCcw size={14} />} hotkey="r" onClick={() => setOpen("resume")}>
          {pipeline.status === "completed" ? "Run again" : "Resume"}
        </Button>
      )}
      {can.approve && (
        <Button
          kind="primary"
          icon={<Check size={14} />}
          hotkey="a"
          onClick={() => setOpen("approve")}
        >
          Approve
        </Button>
      )}
      <ApproveDialog pipeline={pipeline} open={open === "approve"} onClose={close} />
      <BudgetDialog pipeline={pipeline} open={open === "budget"} onClose={close} />
      <ResumeDialog pipeline={pipeline} open={open === "resume"} onClose={close} />
      <CancelDialog pipeline={pipeline} open={open === "cancel"} onClose={close} />
    </>
  );
}

function CancelDialog({ pipeline, open, onClose }: PipelineDialogProps) {
  const forge = useForge();
  const cancel = usePipelineChange<void>({
    pipelineId: pipeline.pipeline_id,
    call: () => forge.pipelines.cancel(pipeline.pipeline_id),
    done: () => "The pipeline is being cancelled.",
  });
  const active = pipeline.steps.filter(({ status }) => status === "running");
  return (
    <ConfirmDialog
      open={open}
      onClose={onClose}
      title="Cancel this pipeline?"
      action="Cancel the pipeline"
      change={cancel}
      refused="The pipeline was not cancelled"
      onConfirm={(close) => cancel.mutate(undefined, { onSuccess: close })}
    >
      <p>
        {active.length > 0
          ? `${plural(active.length, "job")} under way ${active.length === 1 ? "is" : "are"} cancelled (${active
              .slice(0, 4)
              .map(({ name }) => name)
              .join(", ")}${active.length > 4 ? ", …" : ""}), and no other step begins.`
          : "No other step begins."}
      </p>
      <p>Completed steps are kept. Resume continues from there.</p>
    </ConfirmDialog>
  );
}
