/** Messages between a page and layout.worker.ts, the web worker that computes layouts. */
export interface LayoutRequest {
  id: number;
  names: string[];
  edges: [from: string, to: string][];
  /** Edges go from left to right ("LR") or, in narrow windows, from top to bottom ("TB"). */
  direction: "LR" | "TB";
  /** The size of every node, in px. */
  size: { width: number; height: number };
}

export interface Layout {
  /** The top left corner of each node, in the order of `names`. */
  positions: { x: number; y: number }[];
  width: number;
  height: number;
}

export interface LayoutAnswer {
  id: number;
  layout: Layout;
}
