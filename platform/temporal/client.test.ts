import type { Client } from "@temporalio/client";
import { isRefusal, isTemporalReachable } from "./client";

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

test.each([
  [8, "RESOURCE_EXHAUSTED", true],
  [14, "UNAVAILABLE", false],
  [4, "DEADLINE_EXCEEDED", false],
])("answering %i %s to a small request, Temporal is there: %s", async (code, _name, isThere) => {
  const workflowService = { getSystemInfo: () => Promise.reject(failed(code)) };
  const withDeadline = (_deadlineMs: number, work: () => Promise<unknown>) => work();
  const client = { connection: { workflowService, withDeadline } } as unknown as Client;
  expect(await isTemporalReachable(client)).toBe(isThere);
});

test("an error that is no gRPC response is transient", () => {
  expect(isRefusal(new Error("a bug"))).toBe(false);
});
