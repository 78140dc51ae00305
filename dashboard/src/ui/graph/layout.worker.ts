import { Graph, layout } from "@dagrejs/dagre";
import type { LayoutAnswer, LayoutRequest } from "./layout";

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
  const positions = names.map((name) => {
    const { x, y } = graph.node(name) as { x: number; y: number };
    return { x: x - size.width / 2, y: y - size.height / 2 };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  page.postMessage({ id, layout: { positions, width, height } });
};
