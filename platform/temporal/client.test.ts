import { isRefusal } from "./client";

const failed = (code: number): Error =>
  new Error("the call failed", { cause: Object.assign(new Error("grpc"), { code }) });

test.each([
  [3, "INVALID_ARGUMENT"],
  [9, "FAILED_PRECONDITION"],
])("%i %s is a permanent error of the call", (code) => {
  expect(isRefusal(failed(code))).toBe(true);
});

test.each([
  [4, "DEADLINE_EXCEEDED"],
  [8, "RESOURCE_EXHAUSTED"],
  [13, "INTERNAL"],
  [14, "UNAVAILABLE"],
])("%i %s is transient", (code) => {
  expect(isRefusal(failed(code))).toBe(false);
});

test("an error that is no gRPC response is transient", () => {
  expect(isRefusal(new Error("a bug"))).toBe(false);
});
