import { dueOf, isReady } from "./due";
import type { PlannedStep } from "./workflow";

type Step = Parameters<typeof dueOf>[0][number];

const step = (name: string, status: PlannedStep["status"], given: Partial<Step> = {}): Step => ({
  name,
  status,
  needs: [],
  choosesFrom: [],
  optional: false,
  ...given,
});

describe("what a pipeline's workflow must be doing", () => {
  test.each<[string, Step[], boolean, string[], boolean]>([
    [
      "waits for a job",
      [step("a", "running"), step("b", "pending", { needs: ["a"] })],
      false,
      ["a"],
      false,
    ],
    [
      "begins what has all it needs",
      [step("a", "completed"), step("b", "pending", { needs: ["a"] })],
      false,
      [],
      true,
    ],
    ["begins one beside another", [step("a", "running"), step("b", "pending")], false, ["a"], true],
    ["waits for an approval", [step("a", "waiting_approval")], false, [], false],
    [
      "ends where an approval is not needed any more",
      [step("a", "waiting_approval")],
      true,
      [],
      true,
    ],
    ["ends when all is done", [step("a", "completed")], false, [], true],
    [
      "ends when no step may begin",
      [step("a", "failed"), step("b", "pending", { needs: ["a"] })],
      false,
      [],
      true,
    ],
    [
      "begins nothing after a failure",
      [step("a", "failed"), step("b", "running"), step("c", "pending")],
      false,
      ["b"],
      false,
    ],
    [
      "begins nothing once cancelled",
      [step("b", "running"), step("c", "pending")],
      true,
      ["b"],
      false,
    ],
    [
      "begins nothing after a step was left out that is not optional",
      [
        step("a", "failed", { optional: true }),
        step("b", "pending", { needs: ["a"] }),
        step("c", "pending"),
        step("d", "running"),
      ],
      false,
      ["d"],
      false,
    ],
    [
      "goes on beside an optional step that was left out",
      [
        step("a", "failed", { optional: true }),
        step("b", "pending", { needs: ["a"], optional: true }),
        step("c", "pending"),
      ],
      false,
      [],
      true,
    ],
  ])("it %s", (_what, steps, isCancelled, running, isNext) => {
    expect(dueOf(steps, isCancelled)).toEqual({ running, isNext });
  });
});

test("a step that chooses is ready once all that it chooses from have ended, left out ones as well", () => {
  const some = [
    step("a", "completed"),
    step("b", "failed", { optional: true }),
    step("c", "pending", { optional: true, needs: ["b"] }),
  ];
  const best = step("best", "pending", { needs: ["a", "c"], choosesFrom: ["a", "c"] });
  expect(isReady([...some, best], "best")).toBe(true);
  const waiting = some.map((each) =>
    each.name === "b" ? { ...each, status: "running" as const } : each,
  );
  expect(isReady([...waiting, best], "best")).toBe(false);
});
