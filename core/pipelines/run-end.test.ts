import fc from "fast-check";
import { isReady } from "./due-work";
import { judgeRun, type RunEnd } from "./run-end";
import type { StepStatus } from "./step";

type Step = Parameters<typeof judgeRun>[0][number];

const step = (name: string, status: StepStatus, given: Partial<Step> = {}): Step => ({
  name,
  status,
  needs: [],
  choosesFrom: [],
  optional: false,
  error: status === "failed" ? "no" : null,
  error_code: status === "failed" ? "gate_failed" : null,
  ...given,
});

const A = step("a", "completed");
const COMPLETED: RunEnd = { status: "completed", error: null, errorCode: null };
const CANCELLED: RunEnd = { status: "cancelled", error: null, errorCode: null };

test.each<[string, Step[], boolean, RunEnd | undefined]>([
  ["all completed", [A], false, COMPLETED],
  ["all completed before the cancel", [A], true, COMPLETED],
  ["an optional step failed", [A, step("b", "failed", { optional: true })], false, COMPLETED],
  ["an optional step is running", [A, step("b", "running", { optional: true })], false, undefined],
  ["a step may begin", [A, step("b", "pending", { needs: ["a"] })], false, undefined],
  ["cancelled", [A, step("b", "pending", { needs: ["a"] })], true, CANCELLED],
  ["cancelled, and a step is running", [A, step("b", "running")], true, undefined],
  ["waiting for an approval", [A, step("b", "waiting_approval")], false, undefined],
  ["failed, and a step is running", [step("a", "failed"), step("b", "running")], false, undefined],
  [
    "failed",
    [step("a", "failed"), step("b", "pending"), step("c", "waiting_approval")],
    false,
    { status: "failed", error: 'step "a": no', errorCode: "gate_failed" },
  ],
  [
    "a required step was skipped after an optional one had failed",
    [step("a", "failed", { optional: true }), step("b", "pending", { needs: ["a"] })],
    false,
    { status: "failed", error: 'step "a": no', errorCode: "gate_failed" },
  ],
])("the end of a run: %s", (_what, steps, isCancelled, end) => {
  expect(judgeRun(steps, isCancelled)).toEqual(end);
});

/** The statuses that a step may have before `closeRun` ends the run. */
const OPEN: StepStatus[] = ["pending", "waiting_approval", "running", "completed", "failed"];

const anySteps = fc
  .array(
    fc.record({
      status: fc.constantFrom(...OPEN),
      optional: fc.boolean(),
      needs: fc.array(fc.nat(), { maxLength: 3 }),
      choosesFrom: fc.array(fc.nat(), { maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((drawn) =>
    drawn.map(({ status, optional, ...before }, index) => {
      const names = (numbers: number[]): string[] =>
        index === 0 ? [] : [...new Set(numbers.map((number) => `s${number % index}`))];
      const choosesFrom = names(before.choosesFrom);
      const needs = [...new Set([...names(before.needs), ...choosesFrom])];
      return step(`s${index}`, status, { optional, needs, choosesFrom });
    }),
  );

test("whatever the rows are, a run has something to do, or ends for a reason that is in the rows", () => {
  fc.assert(
    fc.property(anySteps, fc.boolean(), (steps, isCancelled) => {
      const end = judgeRun(steps, isCancelled);
      const has = (...statuses: StepStatus[]): boolean =>
        steps.some(({ status }) => statuses.includes(status));
      switch (end?.status) {
        case undefined:
          return (
            has("running", "waiting_approval") ||
            steps.some(({ name, status }) => status === "pending" && isReady(steps, name))
          );
        case "failed":
          return !isCancelled && !has("running") && has("failed");
        case "cancelled":
          return isCancelled && !has("running");
        default:
          return steps.every(({ status, optional }) => optional || status === "completed");
      }
    }),
    { numRuns: 2_000 },
  );
});
