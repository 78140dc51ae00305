import { Graph, layout } from "@dagrejs/dagre";
import type { LayoutAnswer, LayoutRequest } from "./layout-messages";

const page = globalThis as unknown as {
  onmessage: (event: MessageEvent<LayoutRequest>) => void;
  postMessage(message: LayoutAnswer): void;
};

page.onmessage = ({ data: { id, names, edges, direction, size } }) => {
  const graph = new Graph();
  // The default ranker takes seconds for 500 nodes.
  graph.setGraph({ rankdir: direction, ranker: "longest-path", nodesep: 18, ranksep: 48 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const name of names) graph.setNode(name, { ...size });
  for (const [from, to] of edges) graph.setEdge(from, to);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const isAcross = direction === "LR";
  const nodes = names.map((name) => graph.node(name) as { x: number; y: number });
  const isReversed = isRankReversed(nodes, isAcross);
  const positions = nodes.map(({ x, y }) => ({
    x: (isReversed && !isAcross ? width - x : x) - size.width / 2,
    y: (isReversed && isAcross ? height - y : y) - size.height / 2,
  }));
  page.postMessage({ id, layout: { positions, width, height } });
};

/**
 * Whether dagre has reversed the order of `names` in the first node's rank (its column or row).
 * Dagre minimises crossings and ignores the order of `names`. The caller mirrors a reversed layout.
 */
function isRankReversed(nodes: readonly { x: number; y: number }[], isAcross: boolean): boolean {
  const [first] = nodes;
  if (!first) return false;
  const rank = isAcross ? "x" : "y";
  const place = isAcross ? "y" : "x";
  const last = nodes.filter((node) => node[rank] === first[rank]).at(-1);
  return last !== undefined && last[place] < first[place];
}
