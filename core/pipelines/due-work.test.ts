import { dueOf, isReady } from "./due-work";
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

describe("the workflow of a pipeline", () => {
  test.each<[string, Step[], boolean, string[], boolean]>([
    [
      "waits for a job",
      [step("a", "running"), step("b", "pending", { needs: ["a"] })],
      false,
      ["a"],
      false,
    ],
    [
      "begins a step whose needs have completed",
      [step("a", "completed"), step("b", "pending", { needs: ["a"] })],
      false,
      [],
      true,
    ],
    [
      "begins a step while another one runs",
      [step("a", "running"), step("b", "pending")],
      false,
      ["a"],
      true,
    ],
    ["waits for an approval", [step("a", "waiting_approval")], false, [], false],
    [
      "ends when a pending approval is no longer needed",
      [step("a", "waiting_approval")],
      true,
      [],
      true,
    ],
    ["ends when all steps have completed", [step("a", "completed")], false, [], true],
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
      "begins nothing after a required step was skipped",
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
      "goes on after an optional step was skipped",
      [
        step("a", "failed", { optional: true }),
        step("b", "pending", { needs: ["a"], optional: true }),
        step("c", "pending"),
      ],
      false,
      [],
      true,
    ],
  ])("it %s", (_what, steps, isCancelled, running, hasNextAction) => {
    expect(dueOf(steps, isCancelled)).toMatchObject({ running, hasNextAction });
  });
});

test("a choosing step is ready once all its candidates have ended or were skipped", () => {
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
