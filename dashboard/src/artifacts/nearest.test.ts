import type { Lineage } from "@forge/sdk";
import { nearest } from "./nearest";

/** A chain a - b - c - d - e, of which `c` is the subject, and ten that were made from `c`. */
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

test("of a large one the nearest are shown, and the edges between them", () => {
  const shown = nearest(lineage, 13);
  // `a` and `e` are two steps away.
  expect(idsOf(shown)).toEqual(names.filter((name) => name !== "a" && name !== "e"));
  expect(shown.edges).toHaveLength(12);
});

test("never more than asked for, and always the subject", () => {
  expect(idsOf(nearest(lineage, 4))).toEqual(["b", "c", "d", "child-0"]);
  expect(idsOf(nearest(lineage, 1))).toEqual(["c"]);
});
