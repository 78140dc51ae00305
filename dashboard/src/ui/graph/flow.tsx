import "@xyflow/react/dist/base.css";
import {
  Controls,
  type Edge,
  Handle,
  type Node,
  type NodeTypes,
  Position,
  ReactFlow,
} from "@xyflow/react";
import type { ReactNode } from "react";
import styles from "./flow.module.css";
import type { Layout, LayoutRequest } from "./layout-messages";

/** Space between the graph and its frame, in px. */
export const PADDING = 24;
/** The height of the strip with the buttons below the nodes, in px. Must match flow.module.css. */
export const CONTROLS_HEIGHT = 52;
/** With more nodes than this, only the visible ones are drawn. */
const MANY_NODES = 60;

interface Props<Each extends Node> {
  label: string;
  nodes: Each[];
  edges: Edge[];
  nodeTypes: NodeTypes;
  layout: Layout;
  /** The height of the frame, in px. */
  height: number;
  isNarrow: boolean;
  /** True: a drag moves the graph. False: a touch drag scrolls the page, but see `focus`. */
  isPanned: boolean;
  /**
   * If the graph is too large to be readable as a whole, this node is shown first. A drag then
   * moves the graph, even if `isPanned` is false.
   */
  focus: string | undefined;
}

/** Below this zoom, nodes are not readable. */
const MIN_READABLE_ZOOM = 0.4;
const LARGE_ZOOM = 0.8;
/** The difference between the widths of the window and of the graph's frame, in px. */
const OUTSIDE_PX = { wide: 264, narrow: 26 };

/** Whether nodes would be unreadable with the whole graph in view. */
function isTooLarge({
  layout,
  height,
  isNarrow,
}: Pick<Props<Node>, "layout" | "height" | "isNarrow">): boolean {
  const width = window.innerWidth - (isNarrow ? OUTSIDE_PX.narrow : OUTSIDE_PX.wide);
  return layout.width * MIN_READABLE_ZOOM > width || layout.height * MIN_READABLE_ZOOM > height;
}

/** A graph that can be zoomed. The caller positions its nodes. */
export function Flow<Each extends Node>(props: Props<Each>) {
  const { label, nodes, edges, nodeTypes, layout, height, isNarrow, isPanned, focus } = props;
  const isLarge = focus !== undefined && isTooLarge(props);
  return (
    <div className={styles.flow} style={{ height }}>
      <ReactFlow
        // The key changes with the layout, so that React Flow fits a new layout into view.
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

/** A node's content, with the invisible points where its edges end. */
export function WithHandles({
  direction,
  children,
}: Pick<LayoutRequest, "direction"> & { children: ReactNode }) {
  const [target, source] =
    direction === "LR" ? [Position.Left, Position.Right] : [Position.Top, Position.Bottom];
  return (
    <>
      <Handle type="target" position={target} className={styles.handle} isConnectable={false} />
      {children}
      <Handle type="source" position={source} className={styles.handle} isConnectable={false} />
    </>
  );
}
