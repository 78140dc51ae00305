import { Parameters } from "./parameters";

test("placeholders are numbered in the order in which the values were added", () => {
  const parameters = new Parameters();
  expect(parameters.addAll(["job_1", 3])).toBe("$1, $2");
  expect(parameters.add("x")).toBe("$3");
  expect(parameters.values).toEqual(["job_1", 3, "x"]);
});
