import { interleave } from "./rounds";
import { resultRow } from "./rows";
import { tableOf } from "./table";

const FACTS = {
  commit: "abc",
  date: "2026-11-25",
  cpu: "a CPU",
  cores: 2,
  memoryGib: 24,
  system: "Linux",
  node: "v20",
  postgres: "18",
  temporal: "1.31",
  loadBefore: 0.1,
};

test("rounds alternate, and the warm-up is dropped", async () => {
  const order: string[] = [];
  const measure = (name: string) => async () => order.push(name);
  const result = await interleave(2, measure("forge"), { name: "peer", measure: measure("peer") });
  expect(order).toEqual(["forge", "peer", "forge", "peer", "forge", "peer"]);
  expect(result).toEqual({ forge: [3, 5], peer: { name: "peer", values: [4, 6] } });
});

test("a ratio compares values of the same round, and its median is compared with the goal", () => {
  const rounds = { forge: [10, 40, 30], peer: { name: "peer", values: [20, 20, 20] } };
  const described = { id: "P1", what: "jobs", unit: "/s" };
  const row = resultRow({ ...described, goal: { of: "ratio", atLeast: 1.5 } }, rounds);
  expect(row.ratio).toEqual({ median: 1.5, min: 0.5, max: 2 });
  expect(row.isMet).toBe(true);
  expect(resultRow({ ...described, goal: { of: "forge", atMost: 29 } }, rounds).isMet).toBe(false);
  expect(resultRow(described, rounds).isMet).toBeUndefined();
});

test("the table shows the median, the range, the goal and the generator's share", () => {
  const row = resultRow(
    { id: "P3", what: "heartbeats", unit: "/s", goal: { of: "ratio", atLeast: 3 } },
    { forge: [5_000, 6_000, 7_000], peer: { name: "express", values: [2_500, 2_500, 2_500] } },
    { generatorShare: 0.234 },
  );
  const table = tableOf({ facts: FACTS, form: "full", seconds: 61, rows: [row] });
  expect(table.split("\n").at(-1)).toBe(
    "| P3 | heartbeats | 6,000/s (5,000-7,000) | 2,500/s express | 2.4 (2-2.8) | ratio ≥ 3 | not met | 23 % |",
  );
});
