/** The values of all rounds, in short. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

export interface Goal {
  /** What is compared: Forge's own value, or it over the peer's. */
  of: "forge" | "ratio";
  atLeast?: number;
  atMost?: number;
}

/** One line of the table. */
export interface Row {
  id: string;
  what: string;
  unit: string;
  forge: Spread;
  peer?: Spread & { name: string };
  /** Forge's value over the peer's of the same round. */
  ratio?: Spread;
  /** None: the row is for comparison only. */
  goal?: Goal;
  isMet?: boolean;
  /** Share of a core that the load generator took, the most of all rounds; of counts there is none. */
  generatorShare?: number;
  /** What explains the value, such as CPU times. */
  details?: Record<string, number>;
}

export interface Rounds {
  forge: number[];
  peer?: { name: string; values: number[] };
}

type Described = Pick<Row, "id" | "what" | "unit" | "goal">;

export function rowOf(
  described: Described,
  { forge, peer }: Rounds,
  more: Pick<Row, "generatorShare" | "details"> = {},
): Row {
  const spread = spreadOf(forge);
  const ratio = peer
    ? spreadOf(forge.map((value, round) => value / (peer.values[round] ?? Number.NaN)))
    : undefined;
  const { goal } = described;
  const judged = (goal?.of === "ratio" ? ratio : spread)?.median ?? Number.NaN;
  return {
    ...described,
    forge: spread,
    ...(peer ? { peer: { name: peer.name, ...spreadOf(peer.values) } } : {}),
    ...(ratio ? { ratio } : {}),
    ...(goal ? { isMet: isMet(goal, judged) } : {}),
    ...more,
  };
}

const isMet = (
  { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }: Goal,
  value: number,
): boolean => value >= atLeast && value <= atMost;

/** Of an even number of values, the mean of the two in the middle. */
export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = [Math.floor, Math.ceil].map((round) => sorted[round((sorted.length - 1) / 2)]);
  return middle.reduce<number>((sum, value) => sum + (value ?? Number.NaN), 0) / 2;
}

const spreadOf = (values: number[]): Spread => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
});
