import type { Lineage } from "@forge/sdk";
import { nearest } from "./nearest";

/** A chain a - b - c - d - e with the subject `c`, and ten children of `c`. */
const names = ["a", "b", "c", "d", "e", ...Array.from({ length: 10 }, (_, n) => `child-${n}`)];
const chain = ["a b", "b c", "c d", "d e"].map((pair) => pair.split(" "));
const children = names.filter((name) => name.startsWith("child")).map((name) => ["c", name]);
const lineage: Lineage = {
  artifact_id: "c",
  nodes: names.map((id) => ({ id, type: "artifact" })),
  edges: [...chain, ...children].map(([from = "", to = ""]) => ({ from, to, relation: "input" })),
  truncated: false,
};
const idsOf = ({ nodes }: Lineage): string[] => nodes.map(({ id }) => id);

test("a small lineage is shown whole", () => {
  expect(nearest(lineage, names.length)).toBe(lineage);
});

test("of a large lineage, the nearest nodes and their edges are shown", () => {
  const shown = nearest(lineage, 13);
  // `a` and `e` are two edges away from `c`; all other nodes are nearer.
  expect(idsOf(shown)).toEqual(names.filter((name) => name !== "a" && name !== "e"));
  expect(shown.edges).toHaveLength(12);
});

test("never shows more than the limit, and always the subject", () => {
  expect(idsOf(nearest(lineage, 4))).toEqual(["b", "c", "d", "child-0"]);
  expect(idsOf(nearest(lineage, 1))).toEqual(["c"]);
});
