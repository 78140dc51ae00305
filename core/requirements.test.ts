import fc from "fast-check";
import { JOB_TYPES } from "./job-types";
import { fits, gpuTokens, requirementsOf, shapeOf } from "./requirements";

const cpu = { gpuCount: 0, gpuTokens: ["cpu"], memoryGb: 0 };
const a100 = { gpuCount: 1, gpuTokens: gpuTokens("NVIDIA A100-SXM4-80GB"), memoryGb: 80 };
const policy = { trainNeedsGpu: true };

test("train alone requires a GPU by its type", () => {
  for (const type of JOB_TYPES) {
    const needs = requirementsOf(type, {}, policy);
    expect(fits(needs, cpu)).toBe(type !== "train");
    expect(fits(needs, a100)).toBe(true);
  }
  expect(fits(requirementsOf("train", {}, { trainNeedsGpu: false }), cpu)).toBe(true);
});

test.each([
  [{ gpu: 1 }, true],
  [{ gpu: 2 }, false],
  [{ gpu_type: "a100" }, true],
  [{ gpu_type: "A100-80GB" }, true],
  [{ gpu_type: "A10" }, false],
  [{ gpu_type: "H100" }, false],
  [{ memory_gb: 80 }, true],
  [{ memory_gb: 81 }, false],
])("resources %j on one A100 of 80 GB: %s", (resources, expected) => {
  expect(fits(requirementsOf("audit", resources, policy), a100)).toBe(expected);
  expect(fits(requirementsOf("audit", resources, policy), cpu)).toBe(false);
});

test("jobs of one shape fit the same workers", () => {
  const resources = fc.record(
    {
      gpu: fc.integer({ min: 0, max: 3 }),
      gpu_type: fc.constantFrom("A100", "h100", "a100-80gb"),
      memory_gb: fc.constantFrom(0, 40, 80),
    },
    { requiredKeys: [] },
  );
  const job = fc.tuple(fc.constantFrom(...JOB_TYPES), resources);
  const workers = fc.record({
    gpuCount: fc.integer({ min: 0, max: 4 }),
    gpuTokens: fc.subarray(["a100", "h100", "80gb"]),
    memoryGb: fc.constantFrom(0, 40, 80),
  });
  fc.assert(
    fc.property(job, job, workers, ([typeA, a], [typeB, b], worker) => {
      const [left, right] = [requirementsOf(typeA, a, policy), requirementsOf(typeB, b, policy)];
      fc.pre(shapeOf("u", left) === shapeOf("u", right));
      expect(fits(left, worker)).toBe(fits(right, worker));
    }),
  );
});
