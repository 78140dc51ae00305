interface Node {
  name: string;
  needs: readonly string[];
}

/**
 * The edges of the graph, without those that follow from others (transitive reduction): if deploy
 * needs evaluate, and evaluate needs train, there is no edge from train to deploy. @param steps in
 * topological order.
 */
export function linksOf(steps: readonly Node[]): [from: string, to: string][] {
  const before = new Map<string, Set<string>>();
  return steps.flatMap(({ name, needs }) => {
    const indirect = new Set(needs.flatMap((need) => [...(before.get(need) ?? [])]));
    before.set(name, new Set([...needs, ...indirect]));
    return needs
      .filter((need) => !indirect.has(need))
      .map((need): [string, string] => [need, name]);
  });
}
