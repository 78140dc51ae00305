import type { Rounds } from "./rows";

interface Peer {
  name: string;
  measure(): Promise<number>;
}

/**
 * Measures Forge and a peer in turn, so that what else the machine does meets both. The first round of each
 * warms up, and is dropped.
 */
export async function interleave(
  rounds: number,
  forge: () => Promise<number>,
  peer: Peer,
): Promise<Required<Rounds>> {
  const result = { forge: [] as number[], peer: { name: peer.name, values: [] as number[] } };
  for (let round = 0; round <= rounds; round++) {
    const values = [await forge(), await peer.measure()] as const;
    if (round === 0) continue;
    result.forge.push(values[0]);
    result.peer.values.push(values[1]);
  }
  return result;
}
