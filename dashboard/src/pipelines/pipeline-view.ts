import type { Pipeline } from "@forge/sdk";

/** Props of each view of a pipeline's steps. */
export interface PipelineViewProps {
  pipeline: Pipeline;
  /** The step whose details are shown below. */
  chosen: string | undefined;
  onChoose: (step: string) => void;
}
