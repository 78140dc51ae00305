import "@xyflow/react/dist/base.css";
import { Controls, type Edge, type Node, type NodeTypes, ReactFlow } from "@xyflow/react";
import styles from "./flow.module.css";
import type { Layout } from "./layout";

/** Between the graph and its frame, in px. */
export const PADDING = 24;
/** Of the strip below the nodes in which the buttons lie, in px: as flow.module.css has it. */
export const CONTROLS_HEIGHT = 52;
/** With more nodes, only those in view are drawn. */
const MANY_NODES = 60;

interface Props<Each extends Node> {
  label: string;
  nodes: Each[];
  edges: Edge[];
  nodeTypes: NodeTypes;
  layout: Layout;
  /** Of the frame, in px. */
  height: number;
  isNarrow: boolean;
  /** A finger moves the graph instead of scrolling the page. */
  isPanned: boolean;
  /** The node that a graph too large to be read as a whole begins at. */
  focus: string | undefined;
}

/** Smaller, nothing of a node can be read. */
const MIN_ZOOM = 0.4;
/** Of a graph that does not begin as a whole. */
const LARGE_ZOOM = 0.8;
/** Of the window's width, what is not the graph's frame. */
const BESIDE_PX = { wide: 264, narrow: 26 };

/** Whether it can't be read when all of it is in view. */
function isTooLarge({
  layout,
  height,
  isNarrow,
}: Pick<Props<Node>, "layout" | "height" | "isNarrow">): boolean {
  const width = window.innerWidth - (isNarrow ? BESIDE_PX.narrow : BESIDE_PX.wide);
  return layout.width * MIN_ZOOM > width || layout.height * MIN_ZOOM > height;
}

/** A graph whose nodes have their places, to look at and to move about in. */
export function Flow<Each extends Node>(props: Props<Each>) {
  const { label, nodes, edges, nodeTypes, layout, height, isNarrow, isPanned, focus } = props;
  const isLarge = focus !== undefined && isTooLarge(props);
  return (
    <div className={styles.flow} style={{ height }}>
      <ReactFlow
        // Another layout is fitted into view again.
        key={`${isNarrow} ${layout.width} ${layout.height}`}
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        fitView
        fitViewOptions={{
          padding: `${PADDING}px`,
          maxZoom: isLarge ? LARGE_ZOOM : 1,
          ...(isLarge && { nodes: [{ id: focus }] }),
        }}
        minZoom={0.05}
        maxZoom={1.5}
        nodesDraggable={false}
        nodesConnectable={false}
        elementsSelectable={false}
        zoomOnScroll={false}
        zoomOnDoubleClick={false}
        preventScrolling={false}
        panOnDrag={isPanned || isLarge}
        onlyRenderVisibleElements={nodes.length > MANY_NODES}
        aria-label={label}
      >
        {!isNarrow && <Controls showInteractive={false} orientation="horizontal" />}
      </ReactFlow>
    </div>
  );
}
