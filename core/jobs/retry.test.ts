import { isRetryable } from "./retry";
import { OUTCOMES } from "./states";

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
