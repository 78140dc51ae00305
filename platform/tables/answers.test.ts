import { Answers } from "./answers";

test("what was asked for last stays, within count and bytes", () => {
  const answers = new Answers(3, 10);
  for (const key of ["a", "b", "c"]) answers.set(key, "é");
  expect(answers.get("a")).toBe("é");
  answers.set("d", "x");
  expect(["a", "b", "c", "d"].map((key) => answers.get(key) !== undefined)).toEqual([
    true,
    false,
    true,
    true,
  ]);
  answers.set("e", "eight888");
  expect(["a", "c", "d", "e"].map((key) => answers.get(key) !== undefined)).toEqual([
    false,
    false,
    true,
    true,
  ]);
  answers.set("e", "x");
  answers.set("f", "larger than all of it");
  expect(answers.get("f")).toBeUndefined();
});
