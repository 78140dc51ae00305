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
}

/** A graph whose nodes have their places, to look at and to move about in. */
export function Flow<Each extends Node>(props: Props<Each>) {
  const { label, nodes, edges, nodeTypes, layout, height, isNarrow, isPanned } = props;
  return (
    <div className={styles.flow} style={{ height }}>
      <ReactFlow
        // Another layout is fitted into view again.
        key={`${isNarrow} ${layout.width} ${layout.height}`}
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        fitView
        fitViewOptions={{ padding: `${PADDING}px`, maxZoom: 1 }}
        minZoom={0.05}
        maxZoom={1.5}
        nodesDraggable={false}
        nodesConnectable={false}
        elementsSelectable={false}
        zoomOnScroll={false}
        zoomOnDoubleClick={false}
        preventScrolling={false}
        panOnDrag={isPanned}
        onlyRenderVisibleElements={nodes.length > MANY_NODES}
        aria-label={label}
      >
        {!isNarrow && <Controls showInteractive={false} orientation="horizontal" />}
      </ReactFlow>
    </div>
  );
}
