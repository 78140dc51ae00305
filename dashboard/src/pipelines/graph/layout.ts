/** What the page and the layout's worker say to each other. */
export interface LayoutRequest {
  id: number;
  names: string[];
  edges: [from: string, to: string][];
  /** "TB" for narrow windows. */
  direction: "LR" | "TB";
}

export interface Layout {
  /** Left upper corners, by the order of the names. */
  positions: { x: number; y: number }[];
  width: number;
  height: number;
}

export interface LayoutAnswer {
  id: number;
  layout: Layout;
}

export const NODE_WIDTH = 184;
export const NODE_HEIGHT = 62;
