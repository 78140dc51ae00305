import type { Pipeline } from "@forge/sdk";

/** What each view of a pipeline's steps gets. */
export interface PipelineViewProps {
  pipeline: Pipeline;
  /** The step whose details are shown below. */
  chosen: string | undefined;
  onChoose: (step: string) => void;
}
