import { stepsToReset } from "./resume";

type Ended = Parameters<typeof stepsToReset>[0][number];

const step = (name: string, needs: string[], more: Partial<Ended> = {}): Ended => ({
  name,
  needs,
  optional: false,
  choose: null,
  chosen: null,
  status: "completed",
  error_code: null,
  ...more,
});

const gateFails = (...names: string[]) =>
  new Map(names.map((name) => [name, { status: "failed" as const, errorCode: "gate_failed" }]));

test("steps made from a step that runs again run again, too", () => {
  const gateFailed = { status: "failed", error_code: "gate_failed" } as const;
  const steps = [step("a", [], gateFailed), step("b", ["a"]), step("c", ["b"]), step("d", [])];
  expect(stepsToReset(steps, new Map())).toEqual(["a", "b", "c"]);
  expect(stepsToReset(steps, new Map([["a", { status: "completed" }]]))).toEqual([]);
});

test("a new gate that fails a required step keeps the results after it", () => {
  const steps = [step("a", []), step("b", ["a"]), step("c", ["b"], { status: "failed" })];
  expect(stepsToReset(steps, gateFails("a"))).toEqual(["c"]);
});

test("a new gate that fails an optional step resets the steps after it", () => {
  const steps = [
    step("a", [], { optional: true }),
    step("b", ["a"], { optional: true }),
    step("c", ["b"], { status: "failed" }),
  ];
  expect(stepsToReset(steps, gateFails("a")).sort()).toEqual(["b", "c"]);
  const before = [step("a", [], { optional: true, status: "failed" }), step("b", ["a"])];
  expect(stepsToReset(before, gateFails("a"))).toEqual([]);
});

const choose: Ended["choose"] = { from: ["x", "y"], by: "scores.overall", order: "highest" };

test("a completed choice is repeated only if the chosen step is", () => {
  const candidates = [
    step("x", [], { optional: true, status: "failed" }),
    step("y", [], { optional: true }),
    step("report", ["x"], { status: "failed" }),
  ];
  const best = (chosen: string): Ended =>
    step("best", ["x", "y"], { choose, chosen: { step: chosen } });
  expect(stepsToReset([...candidates, best("y")], new Map())).toEqual(["x", "report"]);
  expect(stepsToReset([...candidates, best("x")], new Map())).toEqual(["x", "report", "best"]);
});

test("if a new gate fails the only candidate, the others run again", () => {
  const steps = [
    step("x", [], { optional: true }),
    step("y", [], { optional: true, status: "failed" }),
    step("best", ["x", "y"], { choose, status: "failed" }),
  ];
  expect(stepsToReset(steps, new Map())).toEqual(["best"]);
  expect(stepsToReset(steps, gateFails("x"))).toEqual(["y", "best"]);
});
