import type { Edge } from "@xyflow/react";
import { useMemo } from "react";
import { CONTROLS_HEIGHT, Flow, PADDING } from "../../ui/graph/flow";
import type { Layout } from "../../ui/graph/layout-messages";
import { useIsNarrow } from "../../ui/graph/use-is-narrow";
import { useLayout } from "../../ui/graph/use-layout";
import { SkeletonLines } from "../../ui/skeleton";
import { criticalPath, spansOf } from "../critical-path";
import type { PipelineViewProps } from "../pipeline-view";
import styles from "./graph-view.module.css";
import { linksOf } from "./links-of";
import { StepNode, type StepNodeType } from "./step-node";

const NODE_TYPES = { step: StepNode };
/** The size of a step's box, in px. Must match step-node.module.css. */
const SIZE = { width: 184, height: 62 };
const MAX_HEIGHT = 520;
/** The maximum height of the graph in a narrow window, where steps run from top to bottom. */
const MAX_HEIGHT_NARROW = 640;
/**
 * In a narrow window, `isPanned` is set if the graph's full width fits only at a zoom below this
 * value. The user then has to zoom in to read the steps, and to drag the graph to move it.
 */
const READABLE_ZOOM = 0.6;
/** The difference between the widths of a narrow window and of the graph's frame, in px. */
const MARGINS_NARROW = 26;

/** The steps and their dependencies. A click or Enter selects a step. */
export function GraphView({ pipeline, chosen, onChoose }: PipelineViewProps) {
  const isNarrow = useIsNarrow();
  const direction = isNarrow ? "TB" : "LR";
  const { steps } = pipeline;
  const names = steps.map(({ name }) => name);
  const links = linksOf(steps);
  const layout = useLayout({ names, edges: links, direction, size: SIZE });
  // Uses actual times for ended steps and estimates for the others.
  const critical = useMemo(() => criticalPath(spansOf(steps, Date.now())), [steps]);
  if (layout?.positions.length !== steps.length) return <SkeletonLines count={4} />;
  const nodes = steps.map(
    (step, at): StepNodeType => ({
      id: step.name,
      type: "step",
      position: layout.positions[at] ?? { x: 0, y: 0 },
      ...SIZE,
      focusable: false,
      data: {
        step,
        isChosen: step.name === chosen,
        isCritical: critical.has(step.name),
        direction,
        onChoose,
      },
    }),
  );
  const edges = links.map(
    ([source, target]): Edge => ({
      id: `${source} ${target}`,
      source,
      target,
      focusable: false,
      className: (critical.has(source) && critical.has(target) && styles.critical) || "",
    }),
  );
  const zoom = isNarrow ? narrowZoom(layout) : 1;
  const height = heightOf(layout, isNarrow, zoom);
  return (
    <Flow
      label="Graph of the steps"
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      layout={layout}
      height={height}
      isNarrow={isNarrow}
      isPanned={!isNarrow || zoom < READABLE_ZOOM}
      focus={chosen}
    />
  );
}

/** The zoom that shows the graph's full width. */
const narrowZoom = ({ width }: Layout): number =>
  Math.min(1, (window.innerWidth - MARGINS_NARROW - 2 * PADDING) / Math.max(1, width));

/**
 * The height of the graph's frame, in px. A wide window has a strip with buttons below the graph.
 * The graph is centred in its frame, so the frame needs the strip's height above the graph as well.
 */
const heightOf = ({ height }: Layout, isNarrow: boolean, zoom: number): number =>
  isNarrow
    ? Math.min(height * zoom + 2 * PADDING, MAX_HEIGHT_NARROW)
    : Math.min(height * zoom + 2 * Math.max(PADDING, CONTROLS_HEIGHT), MAX_HEIGHT);
