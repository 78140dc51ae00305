import fc from "fast-check";
import { InvalidRequest } from "../errors";
import { remainingSeconds } from "./forecast";
import { downstreamOf, inOrder } from "./graph";
import { stepsToRepeat } from "./resume";
import type { StepStatus } from "./step";
import { mayBegin, type StepEnd } from "./workflow";

interface Node {
  name: string;
  needs: string[];
}

/** Steps that need only such as come before them in some order, in any order. */
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

test("each step comes after what it needs, and none is lost", () => {
  fc.assert(
    fc.property(dags, (steps) => {
      const names = inOrder(steps, at).map(({ name }) => name);
      expect([...names].sort()).toEqual(steps.map(({ name }) => name).sort());
      for (const { name, needs } of steps) {
        for (const need of needs) expect(names.indexOf(need)).toBeLessThan(names.indexOf(name));
      }
    }),
  );
});

test("what is in order already stays as it is", () => {
  const steps = ["c", "a", "b"].map((name) => ({ name, needs: [] }));
  expect(inOrder(steps, at)).toEqual(steps);
});

test("one edge back makes a circle, which is refused by its names", () => {
  fc.assert(
    fc.property(dags, fc.nat(), (steps, pick) => {
      const from = steps[pick % steps.length] as Node;
      const down = [...downstreamOf(from.name, steps)];
      const last = down[pick % down.length] as string;
      const circle = steps.map((step) =>
        step === from ? { ...step, needs: [...step.needs, last] } : step,
      );
      expect(() => inOrder(circle, at)).toThrow(/steps need each other: .* → /);
    }),
  );
});

test("unknown and doubled names are refused, with the place and the nearest name", () => {
  expect(() =>
    inOrder(
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
  expect(() => inOrder(twice, at)).toThrow(InvalidRequest);
});

const endings: StepStatus[] = ["completed", "failed", "skipped"];

test("whatever ended how, a resume does again what is needed and nothing that a completed step stands on", () => {
  fc.assert(
    fc.property(
      dags,
      fc.array(fc.constantFrom(...endings), { minLength: 12, maxLength: 12 }),
      (dag, ends) => {
        const ordered = inOrder(dag, at);
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

test("a choice's failed candidates are done again only where none was left", () => {
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

test("a step may begin once all that it needs has completed; its candidates may have failed", () => {
  const ends: Record<string, StepEnd> = { a: "completed", b: "failed", c: "skipped" };
  const may = (needs: string[], choosesFrom: string[] = []): boolean =>
    mayBegin({ needs, choosesFrom }, (name) => ends[name] ?? "skipped");
  expect(may([])).toBe(true);
  expect(may(["a"])).toBe(true);
  expect(may(["a", "b"])).toBe(false);
  expect(may(["a", "b", "c"], ["b", "c"])).toBe(true);
});

test("what is left takes as long as the longest way through it", () => {
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
