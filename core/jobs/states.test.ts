import { errorCodeOf, isRetryable, OUTCOMES } from "./states";

test("only a lost worker and a retryable failure are retried", () => {
  const retried = OUTCOMES.flatMap((outcome) =>
    [true, false]
      .filter((retryable) => isRetryable({ outcome, retryable }))
      .map((retryable) => [outcome, retryable]),
  );
  expect(retried).toEqual([
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
] as const)("an attempt that ended as %j fails its job with %s", (end, code) => {
  expect(errorCodeOf(end)).toBe(code);
});
