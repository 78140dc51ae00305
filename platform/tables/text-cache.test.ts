import { TextCache } from "./text-cache";

test("keeps the most recently used texts within a count and a number of bytes", () => {
  const cache = new TextCache(3, 10);
  for (const key of ["a", "b", "c"]) cache.set(key, "é");
  expect(cache.get("a")).toBe("é");
  cache.set("d", "x");
  expect(["a", "b", "c", "d"].map((key) => cache.get(key) !== undefined)).toEqual([
    true,
    false,
    true,
    true,
  ]);
  cache.set("e", "eight888");
  expect(["a", "c", "d", "e"].map((key) => cache.get(key) !== undefined)).toEqual([
    false,
    false,
    true,
    true,
  ]);
  cache.set("e", "x");
  cache.set("f", "larger than all of it");
  expect(cache.get("f")).toBeUndefined();
});
