import fc from "fast-check";
import { EventGaps } from "./event-gaps";

test("every committed id is read exactly once, in any order of commits", () => {
  const batches = fc.array(fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 12 }));
  fc.assert(
    fc.property(batches, (given) => {
      const gaps = new EventGaps(0, () => 0);
      const committed = new Set<number>();
      const seen: number[] = [];
      for (const batch of given) {
        for (const id of batch) committed.add(id);
        // Simulate the SQL query: it finds the committed ids above `lastId`, and those that were
        // missing before.
        const missing = new Set(gaps.missing());
        const found = [...committed].filter((id) => id > gaps.lastId || missing.has(id));
        gaps.read(found);
        seen.push(...found);
      }
      expect([...seen].sort((a, b) => a - b)).toEqual([...committed].sort((a, b) => a - b));
    }),
  );
});

test("the id of a rolled back transaction is dropped after a minute", () => {
  let now = 0;
  const gaps = new EventGaps(10, () => now);
  gaps.read([12, 14]);
  expect(gaps.missing()).toEqual([11, 13]);
  now = 60_000;
  expect(gaps.missing()).toEqual([11, 13]);
  now = 60_001;
  expect(gaps.missing()).toEqual([]);
  expect(gaps.lastId).toBe(14);
});
