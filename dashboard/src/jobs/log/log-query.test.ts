import { levelPattern, readLogQuery, withoutAttempt } from "./log-query";

test.each([
  ["loss", { text: "loss" }],
  ["level:error", { level: "error", text: "" }],
  ["level:WARNING cuda out of", { level: "warn", text: "cuda out of" }],
  ["rows attempt:2", { attempt: 2, text: "rows" }],
  ["attempt:2 level:info /row \\d+/", { attempt: 2, level: "info", text: "/row \\d+/" }],
  ["level:loud", { text: "level:loud" }],
  ["attempt:0", { text: "attempt:0" }],
  ["loglevel:error", { text: "loglevel:error" }],
])("%s", (typed, expected) => {
  expect(readLogQuery(typed)).toEqual(expected);
});

test("an attempt chosen elsewhere replaces the typed one", () => {
  expect(withoutAttempt("attempt:2 level:error rows")).toBe("level:error rows");
  // A term with an invalid number is kept, because `readLogQuery` treats it as text to search for.
  expect(withoutAttempt("attempt:abc")).toBe("attempt:abc");
});

test.each([
  "2026-11-25 12:00:00 ERROR no space left",
  "[error] no space left",
  '{"level":"error","message":"x"}',
  "time=1 level=error msg=x",
  "CRITICAL: the disk is full",
])("%s is an error", (line) => {
  expect(levelPattern("error").test(line)).toBe(true);
  expect(levelPattern("info").test(line)).toBe(false);
});

test.each(["INFO 0 errors so far", "no error", "TERRORS", "level: info, errors: 0"])(
  "%s is not an error",
  (line) => {
    expect(levelPattern("error").test(line)).toBe(false);
  },
);
