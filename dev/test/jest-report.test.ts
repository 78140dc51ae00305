import { type JestReport, tallySuite } from "./jest-report";

type FileResult = JestReport["testResults"][number];

const one = (status: string, message?: string): FileResult["assertionResults"][number] => ({
  fullName: `a ${status} one`,
  status,
  failureMessages: message === undefined ? [] : [message],
});

const file = (given: Partial<FileResult>): FileResult => ({
  name: "/root/test/e2e/a.test.ts",
  message: "",
  startTime: 1_000,
  endTime: 3_000,
  assertionResults: [one("passed")],
  ...given,
});

const tally = (...testResults: FileResult[]) =>
  tallySuite("e2e", ["test/e2e/"], { testResults }, "/root");

test("counts passed, failed and skipped tests, with the time of each file", () => {
  const tests = [one("passed"), one("failed", "line 1\nline 2"), one("pending")];
  expect(tally(file({ assertionResults: tests, message: "all of it" }))).toEqual({
    suite: "e2e",
    passed: 1,
    failed: 1,
    skipped: 1,
    failures: ["test/e2e/a.test.ts: a failed one\n  line 1\n  line 2"],
    files: [{ path: "test/e2e/a.test.ts", seconds: 2 }],
    seconds: 2,
  });
});

test("a file whose afterAll failed has failed, even if its tests passed", () => {
  const { passed, failed, failures } = tally(file({ message: "I1 a job has not ended" }));
  expect({ passed, failed }).toEqual({ passed: 1, failed: 1 });
  expect(failures).toEqual(["test/e2e/a.test.ts\n  I1 a job has not ended"]);
});

test("a file that can't be loaded has failed", () => {
  const broken = file({ assertionResults: [], message: "Cannot find module" });
  expect(tally(broken)).toMatchObject({ passed: 0, failed: 1 });
});

test("a suite without any passed or failed test has failed", () => {
  expect(tally()).toMatchObject({ failed: 1, failures: ["no test ran"] });
  const skipped = file({ assertionResults: [one("pending")] });
  expect(tally(skipped)).toMatchObject({ failed: 1, skipped: 1 });
});

test("files of other suites are not counted", () => {
  const other = file({ name: "/root/test/faults/a.test.ts", message: "broken" });
  expect(tally(file({}), other)).toMatchObject({ passed: 1, failed: 0 });
});
