/** Summary of the values of all rounds. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

export interface Goal {
  /** What is compared with the goal: Forge's value, or its ratio to the peer's value. */
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
  /** Forge's value divided by the peer's value of the same round. */
  ratio?: Spread;
  /** A row without a goal is for comparison only. */
  goal?: Goal;
  isMet?: boolean;
  /**
   * The largest share of a core that the load generator used in any round. Absent for P8 and P10,
   * which don't use the load generator.
   */
  generatorShare?: number;
  /** Values that explain the result, such as CPU times. */
  details?: Record<string, number>;
}

export interface Rounds {
  forge: number[];
  peer?: { name: string; values: number[] };
}

/** What a row is about. */
export type Described = Pick<Row, "id" | "what" | "unit" | "goal">;

export function resultRow(
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

/** If the number of values is even, the median is the mean of the two values in the middle. */
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
