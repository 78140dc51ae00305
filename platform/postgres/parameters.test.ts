import { Parameters } from "./parameters";

test("an INSERT names its columns, and other parameters go on from there", () => {
  const parameters = new Parameters();
  expect(parameters.insert({ job_id: "job_1", priority: 3 })).toBe(
    "(job_id, priority) values ($1, $2)",
  );
  expect(parameters.add("x")).toBe("$3");
  expect(parameters.values).toEqual(["job_1", 3, "x"]);
});
