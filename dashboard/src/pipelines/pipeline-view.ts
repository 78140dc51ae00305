import type { Pipeline } from "@forge/sdk";

/** Props of each dialog that changes a pipeline. */
export interface PipelineDialogProps {
  pipeline: Pipeline;
  open: boolean;
  onClose: () => void;
}

/** Props of each view of a pipeline's steps. */
export interface PipelineViewProps {
  pipeline: Pipeline;
  /** The step whose details are shown below. */
  chosen: string | undefined;
  onChoose: (step: string) => void;
}
