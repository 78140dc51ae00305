import fc from "fast-check";
import { InvalidRequest } from "../errors";
import { remainingSeconds } from "./forecast";
import { downstreamOf, sortSteps } from "./graph";
import { stepsToRepeat } from "./resume";
import type { StepStatus } from "./step";
import { mayBegin, type StepEnd } from "./workflow";

interface Node {
  name: string;
  needs: string[];
}

/** Acyclic graphs of steps, shuffled. */
const dags: fc.Arbitrary<Node[]> = fc
  .integer({ min: 1, max: 12 })
  .chain((count) =>
    fc.tuple(
      ...Array.from({ length: count }, (_, index) =>
        fc
          .subarray(Array.from({ length: index }, (_unused, before) => `s${before}`))
          .map((needs) => ({ name: `s${index}`, needs })),
      ),
    ),
  )
  .chain((steps) => fc.shuffledSubarray(steps, { minLength: steps.length }));

const at = (index: number): string => `steps.${index}`;

test("each step comes after the steps it needs, and none is missing", () => {
  fc.assert(
    fc.property(dags, (steps) => {
      const names = sortSteps(steps, at).map(({ name }) => name);
      expect([...names].sort()).toEqual(steps.map(({ name }) => name).sort());
      for (const { name, needs } of steps) {
        for (const need of needs) expect(names.indexOf(need)).toBeLessThan(names.indexOf(name));
      }
    }),
  );
});

test("keeps the order of steps that are already sorted", () => {
  const steps = ["c", "a", "b"].map((name) => ({ name, needs: [] }));
  expect(sortSteps(steps, at)).toEqual(steps);
});

test("a cycle is rejected, and the message names its steps", () => {
  fc.assert(
    fc.property(dags, fc.nat(), (steps, pick) => {
      const from = steps[pick % steps.length] as Node;
      const down = [...downstreamOf(from.name, steps)];
      const last = down[pick % down.length] as string;
      const cyclic = steps.map((step) =>
        step === from ? { ...step, needs: [...step.needs, last] } : step,
      );
      expect(() => sortSteps(cyclic, at)).toThrow(/steps depend on each other: .* → /);
    }),
  );
});

test("unknown and duplicate names are rejected, with the field and a similar name", () => {
  expect(() =>
    sortSteps(
      [
        { name: "train", needs: ["adit"] },
        { name: "audit", needs: [] },
      ],
      at,
    ),
  ).toThrow(
    expect.objectContaining({
      param: "steps.0.needs",
      message: expect.stringMatching(/"audit"\?/),
    }),
  );
  const twice = [
    { name: "a", needs: [] },
    { name: "a", needs: [] },
  ];
  expect(() => sortSteps(twice, at)).toThrow(InvalidRequest);
});

const endings: StepStatus[] = ["completed", "failed", "skipped"];

test("a resume repeats exactly the steps that have not completed, and all steps after the given one", () => {
  fc.assert(
    fc.property(
      dags,
      fc.array(fc.constantFrom(...endings), { minLength: 12, maxLength: 12 }),
      (dag, ends) => {
        const ordered = sortSteps(dag, at);
        const status = new Map<string, StepStatus>();
        ordered.forEach(({ name, needs }, index) => {
          const isReady = needs.every((need) => status.get(need) === "completed");
          status.set(name, isReady ? (ends[index] ?? "completed") : "skipped");
        });
        const steps = ordered.map((step) => ({
          ...step,
          status: status.get(step.name) ?? "pending",
          optional: false,
          choose: null,
          error_code: null,
        }));
        const again = new Set(stepsToRepeat(steps));
        for (const step of steps) expect(again.has(step.name)).toBe(step.status !== "completed");
        const [first] = steps;
        if (first)
          expect(new Set(stepsToRepeat(steps, first.name))).toEqual(
            new Set([...again, ...downstreamOf(first.name, steps)]),
          );
      },
    ),
  );
});

test("failed candidates of a choice are repeated only if there was nothing to choose", () => {
  const steps = (code: string) =>
    [
      { name: "a", status: "completed", optional: true, needs: [] },
      { name: "b", status: "failed", optional: true, needs: [] },
      { name: "best", status: "failed", optional: false, needs: ["a", "b"] },
    ].map((step) => ({
      ...step,
      status: step.status as StepStatus,
      choose:
        step.name === "best"
          ? { from: ["a", "b"], by: "scores.x", order: "highest" as const }
          : null,
      error_code: step.name === "best" ? code : null,
    }));
  expect(stepsToRepeat(steps("step_failed"))).toEqual(["best"]);
  expect(stepsToRepeat(steps("nothing_to_choose"))).toEqual(["b", "best"]);
});

test("a step may begin once its needs have completed; candidates of its choice may have failed", () => {
  const ends: Record<string, StepEnd> = { a: "completed", b: "failed", c: "skipped" };
  const may = (needs: string[], choosesFrom: string[] = []): boolean =>
    mayBegin({ needs, choosesFrom }, (name) => ends[name] ?? "skipped");
  expect(may([])).toBe(true);
  expect(may(["a"])).toBe(true);
  expect(may(["a", "b"])).toBe(false);
  expect(may(["a", "b", "c"], ["b", "c"])).toBe(true);
});

test("the remaining time is that of the longest path", () => {
  const step = (name: string, needs: string[], status: StepStatus, elapsed_s = 0) => ({
    name,
    needs,
    status,
    elapsed_s,
    job_type: "train" as const,
  });
  const steps = [
    step("done", [], "completed"),
    step("running", ["done"], "running", 40),
    step("short", ["done"], "pending"),
    step("last", ["running", "short"], "pending"),
  ];
  expect(remainingSeconds(steps, () => 100)).toBe(200);
  expect(remainingSeconds(steps, () => undefined)).toBeNull();
  expect(remainingSeconds([step("late", [], "running", 500)], () => 100)).toBe(0);
  expect(remainingSeconds([], () => undefined)).toBe(0);
});
