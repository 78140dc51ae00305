import type { Rounds } from "./rows";

export interface Peer {
  name: string;
  measure(): Promise<number>;
}

/**
 * Measures Forge and its peers alternately, so that other load on the machine affects all of them.
 * The first round is a warm-up and is dropped. Returns one result per peer, in the same order.
 */
export async function interleaveAll(
  rounds: number,
  forge: () => Promise<number>,
  peers: Peer[],
): Promise<Required<Rounds>[]> {
  const results = peers.map(({ name }) => ({
    forge: [] as number[],
    peer: { name, values: [] as number[] },
  }));
  for (let round = 0; round <= rounds; round++) {
    const value = await forge();
    for (const [at, peer] of peers.entries()) {
      const peerValue = await peer.measure();
      if (round === 0) continue;
      results[at]?.forge.push(value);
      results[at]?.peer.values.push(peerValue);
    }
  }
  return results;
}

export async function interleave(
  rounds: number,
  forge: () => Promise<number>,
  peer: Peer,
): Promise<Required<Rounds>> {
  const [result] = await interleaveAll(rounds, forge, [peer]);
  if (!result) throw new Error("nothing was measured");
  return result;
}
