import { readJobsSearch } from "../jobs/search";
import { parseSearch, stringifySearch } from "./search-params";

test("addresses are short, and lead back to the same filters", () => {
  const search = { status: ["running", "failed"], q: "a&b=c", from: "2026-11-01" };
  const address = stringifySearch(search);
  expect(address).toBe("?status=running&status=failed&q=a%26b%3Dc&from=2026-11-01");
  expect(readJobsSearch(parseSearch(address))).toEqual(search);
});

test("names of JavaScript's own properties are ordinary names", () => {
  expect(stringifySearch(parseSearch("?constructor=a&__proto__=b"))).toBe(
    "?constructor=a&__proto__=b",
  );
});

test.each(["2026-99-99", "2026-02-31", "2026-00-01"])("%s is not a valid day", (day) => {
  expect(readJobsSearch(parseSearch(`?from=${day}&to=2026-11-30`))).toEqual({ to: "2026-11-30" });
});

test("unknown parameters are dropped", () => {
  const search = parseSearch("?status=sleeping&status=failed&from=yesterday&other=1&q=");
  expect(readJobsSearch(search)).toEqual({ status: ["failed"] });
});
