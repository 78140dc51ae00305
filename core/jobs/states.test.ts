import { errorCodeOf } from "./states";

test.each([
  [{ outcome: "failed" }, "job_error"],
  [{ outcome: "failed", errorCode: "artifact_conflict" }, "artifact_conflict"],
  [{ outcome: "worker_lost" }, "worker_lost"],
  [{ outcome: "timeout" }, "timeout"],
  [{ outcome: "cancelled" }, "cancelled"],
] as const)("an attempt that ended as %j fails its job with %s", (end, code) => {
  expect(errorCodeOf(end)).toBe(code);
});
