/** Messages between a page and the layout worker. */
export interface LayoutRequest {
  id: number;
  names: string[];
  edges: [from: string, to: string][];
  /** "TB" for narrow windows. */
  direction: "LR" | "TB";
  /** The size of every node, in px. */
  size: { width: number; height: number };
}

export interface Layout {
  /** The top left corners, in the order of the names. */
  positions: { x: number; y: number }[];
  width: number;
  height: number;
}

export interface LayoutAnswer {
  id: number;
  layout: Layout;
}
