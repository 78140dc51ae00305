import { isRefusal } from "./client";

const failed = (code: number): Error =>
  new Error("the call failed", { cause: Object.assign(new Error("grpc"), { code }) });

test.each([
  [3, "INVALID_ARGUMENT"],
  [9, "FAILED_PRECONDITION"],
])("%i %s is the call's own fault", (code) => {
  expect(isRefusal(failed(code))).toBe(true);
});

test.each([
  [4, "DEADLINE_EXCEEDED"],
  [8, "RESOURCE_EXHAUSTED"],
  [13, "INTERNAL"],
  [14, "UNAVAILABLE"],
])("%i %s may pass", (code) => {
  expect(isRefusal(failed(code))).toBe(false);
});

test("what is no answer of Temporal's may pass", () => {
  expect(isRefusal(new Error("a bug"))).toBe(false);
});
