import type { PipelineStep } from "@forge/sdk";
import { criticalPath, spansOf } from "./critical-path";

const NOW_MS = Date.parse("2026-01-01T00:00:00Z");

const step = (name: string, expectedS: number, needs: string[] = []): PipelineStep =>
  ({ name, needs, status: "pending", expected_duration_s: expectedS }) as unknown as PipelineStep;

const pathOf = (steps: PipelineStep[]): string[] => [...criticalPath(spansOf(steps, NOW_MS))];

test("has the slowest of the steps that each step waits for", () => {
  const steps = [step("fast", 1), step("slow", 2), step("last", 1, ["fast", "slow"])];
  expect(pathOf(steps)).toEqual(["last", "slow"]);
});

test("has a step without duration, whatever the order in which it is declared as needed", () => {
  for (const needs of [
    ["audit", "train"],
    ["train", "audit"],
  ]) {
    const steps = [step("audit", 5), step("train", 0, ["audit"]), step("evaluate", 1, needs)];
    expect(pathOf(steps)).toEqual(["evaluate", "train", "audit"]);
  }
});
