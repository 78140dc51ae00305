interface Node {
  name: string;
  needs: readonly string[];
}

/**
 * Who needs whom, without what follows from the rest: where deploy needs evaluate, and evaluate train,
 * a line from train to deploy says nothing.
 *
 * @param steps each after what it needs.
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
