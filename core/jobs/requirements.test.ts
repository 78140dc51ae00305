import fc from "fast-check";
import { declarationOf, JOB_TYPES } from "./job-types";
import {
  fits,
  gpuTokens,
  groupWithoutAvoided,
  requirementGroupOf,
  requirementsOf,
} from "./requirements";
import { DEFAULT_JOB_POLICY as policy } from "./type-policy";

const cpu = {
  workerId: "w1",
  jobTypes: null,
  gpuCount: 0,
  gpuTokens: ["cpu"],
  memoryGb: 0,
  tags: [],
};
const a100 = {
  workerId: "w2",
  jobTypes: null,
  gpuCount: 1,
  gpuTokens: gpuTokens("NVIDIA A100-SXM4-80GB"),
  memoryGb: 80,
  tags: ["eu", "nvlink"],
};

test("only job types that declare it require a GPU by default, and train is one", () => {
  for (const type of JOB_TYPES) {
    const needs = requirementsOf(type, {}, policy);
    expect(fits(needs, cpu)).toBe(!declarationOf(type).requirements?.gpu);
    expect(fits(needs, a100)).toBe(true);
  }
  expect(fits(requirementsOf("train", {}, {}), cpu)).toBe(true);
});

test.each([
  [{ gpu: 1 }, true],
  [{ gpu: 2 }, false],
  [{ gpu_type: "a100" }, true],
  [{ gpu_type: "A100-80GB" }, true],
  [{ gpu_type: "A10" }, false],
  [{ gpu_type: "H100" }, false],
  [{ memory_gb: 80 }, true],
  [{ memory_gb: 87 }, false],
  [{ gpu: 1, tags: ["eu"] }, true],
  [{ gpu: 1, tags: ["eu", "us"] }, false],
])("resources %j on one A100 of 80 GB: %s", (resources, expected) => {
  expect(fits(requirementsOf("audit", resources, policy), a100)).toBe(expected);
  expect(fits(requirementsOf("audit", resources, policy), cpu)).toBe(false);
});

test("a card that reports GiB satisfies a request for its nominal GB", () => {
  const needs = requirementsOf("audit", { memory_gb: 80 }, {});
  for (const memoryGb of [79.6, 74.5]) expect(fits(needs, { ...a100, memoryGb })).toBe(true);
  expect(fits(needs, { ...a100, memoryGb: 74 })).toBe(false);
  // The memory that nvidia-smi reports for T4, L4 and L40S: less than the nominal memory, because
  // error correction uses a part.
  for (const [sold, reportedMib] of [
    [16, 15_360],
    [24, 23_034],
    [48, 46_068],
  ] as const) {
    const card = { ...a100, memoryGb: reportedMib / 1024 };
    expect(fits(requirementsOf("audit", { memory_gb: sold }, {}), card)).toBe(true);
  }
});

test("memory_gb implies no GPU if the job asks for 0 GPUs", () => {
  const needs = requirementsOf("audit", { gpu: 0, memory_gb: 16 }, {});
  expect(needs).toMatchObject({ gpuCount: 0, memoryGb: 0 });
  expect(fits(needs, cpu)).toBe(true);
});

test("a policy sets minimums, and the GPU type if the job names none", () => {
  const strict = { audit: { gpu: 2, gpu_type: "A100", memory_gb: 40, tags: ["eu"] } };
  expect(requirementsOf("audit", {}, strict)).toEqual({
    jobType: "audit",
    gpuCount: 2,
    gpuTokens: ["a100"],
    memoryGb: 40,
    tags: ["eu"],
    avoid: [],
  });
  const own = { gpu: 1, gpu_type: "H100", memory_gb: 80, tags: ["fast"] };
  expect(requirementsOf("audit", own, strict)).toEqual({
    jobType: "audit",
    gpuCount: 2,
    gpuTokens: ["h100"],
    memoryGb: 80,
    tags: ["eu", "fast"],
    avoid: [],
  });
});

test("jobs of one requirement group fit the same workers", () => {
  const resources = fc.record(
    {
      gpu: fc.integer({ min: 0, max: 1 }),
      gpu_type: fc.constantFrom("A100", "a100"),
      memory_gb: fc.constantFrom(0, 40),
      tags: fc.subarray(["eu"]),
    },
    { requiredKeys: [] },
  );
  const type = fc.constantFrom("audit" as const, "train" as const);
  const avoid = fc.subarray(["w1", "w2"]);
  const job = fc.tuple(type, resources, avoid);
  const workers = fc.record({
    workerId: fc.constantFrom("w1", "w2"),
    jobTypes: fc.option(fc.subarray([...JOB_TYPES])),
    gpuCount: fc.integer({ min: 0, max: 4 }),
    gpuTokens: fc.subarray(["a100", "h100", "80gb"]),
    memoryGb: fc.constantFrom(0, 40, 80),
    tags: fc.subarray(["eu", "us"]),
  });
  fc.assert(
    fc.property(job, job, workers, ([typeA, a, notA], [typeB, b, notB], worker) => {
      const left = { ...requirementsOf(typeA, a, policy), avoid: notA };
      const right = { ...requirementsOf(typeB, b, policy), avoid: notB };
      fc.pre(requirementGroupOf("u", left) === requirementGroupOf("u", right));
      expect(fits(left, worker)).toBe(fits(right, worker));
    }),
  );
});

test("a group without its avoided workers is that of the same jobs that avoid none", () => {
  const needs = requirementsOf("audit", { gpu: 1, tags: ["a,]"] }, {});
  const plain = requirementGroupOf("u", needs);
  const avoiding = requirementGroupOf("u", { ...needs, avoid: ["w1", "w2"] });
  expect(avoiding).not.toBe(plain);
  expect([plain, avoiding].map(groupWithoutAvoided)).toEqual([plain, plain]);
});
