/** What a page and the layout's worker say to each other. */
export interface LayoutRequest {
  id: number;
  names: string[];
  edges: [from: string, to: string][];
  /** "TB" for narrow windows. */
  direction: "LR" | "TB";
  /** Of every node, in px. */
  size: { width: number; height: number };
}

export interface Layout {
  /** Upper left corners, in the order of the names. */
  positions: { x: number; y: number }[];
  width: number;
  height: number;
}

export interface LayoutAnswer {
  id: number;
  layout: Layout;
}
