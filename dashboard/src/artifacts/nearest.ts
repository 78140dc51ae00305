import type { Lineage } from "@forge/sdk";

/** Returns the `limit` nodes closest to the lineage's artifact, and the edges between them. */
export function nearest(lineage: Lineage, limit: number): Lineage {
  if (lineage.nodes.length <= limit) return lineage;
  const neighbours = new Map<string, string[]>();
  const link = (from: string, to: string): void => {
    const known = neighbours.get(from);
    if (known) known.push(to);
    else neighbours.set(from, [to]);
  };
  for (const { from, to } of lineage.edges) {
    link(from, to);
    link(to, from);
  }
  const near = new Set([lineage.artifact_id]);
  // The loop also visits the nodes that it adds to `near`.
  for (const id of near) {
    for (const other of neighbours.get(id) ?? []) if (near.size < limit) near.add(other);
    if (near.size >= limit) break;
  }
  return {
    ...lineage,
    nodes: lineage.nodes.filter(({ id }) => near.has(id)),
    edges: lineage.edges.filter(({ from, to }) => near.has(from) && near.has(to)),
  };
}
