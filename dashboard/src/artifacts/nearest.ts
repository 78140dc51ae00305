import type { Lineage } from "@forge/sdk";

/**
 * The nodes of a lineage that are fewest steps away from its artifact, at most `limit`, with the edges between
 * them; in the order they had.
 */
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
  // A set goes on with what is added to it meanwhile.
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
