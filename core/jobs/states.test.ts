import { deservesAnotherAttempt, errorCodeOf, OUTCOMES } from "./states";

test("only a lost worker and a retryable failure deserve another attempt", () => {
  const deserving = OUTCOMES.flatMap((outcome) =>
    [true, false]
      .filter((retryable) => deservesAnotherAttempt({ outcome, retryable }))
      .map((retryable) => [outcome, retryable]),
  );
  expect(deserving).toEqual([
    ["failed", true],
    ["worker_lost", true],
    ["worker_lost", false],
  ]);
});

test.each([
  [{ outcome: "failed" }, "job_error"],
  [{ outcome: "failed", errorCode: "artifact_conflict" }, "artifact_conflict"],
  [{ outcome: "worker_lost" }, "worker_lost"],
  [{ outcome: "timeout" }, "timeout"],
  [{ outcome: "cancelled" }, "cancelled"],
] as const)("%j fails its job with %s", (end, code) => {
  expect(errorCodeOf(end)).toBe(code);
});
