import { tallyPytest } from "./pytest-report";

const REPORT = `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="1">
<testcase classname="agent.tests.a" name="test_one" time="0.5" />
<testcase classname="agent.tests.a" name="test_two[x&gt;y]" time="0.25"><failure message="assert 1 == 2&#10; + where">trace
back</failure></testcase>
<testcase classname="agent.tests.b" name="test_three" time="1"><error message="failed on setup">trace</error></testcase>
<testcase classname="agent.tests.b" name="test_four" time="0"><skipped type="pytest.skip" message="no GPU">here</skipped></testcase>
<testcase classname="agent.tests.b" name="test_five" time="1"><system-out>a &lt;failure> of its own</system-out></testcase>
</testsuite></testsuites>`;

test("counts cases, lists failures with their messages, and sums up the time of each file", () => {
  expect(tallyPytest(REPORT)).toEqual({
    suite: "python",
    passed: 2,
    failed: 2,
    skipped: 1,
    failures: [
      "agent.tests.a: test_two[x&gt;y]\n  assert 1 == 2\n   + where",
      "agent.tests.b: test_three\n  failed on setup",
    ],
    files: [
      { path: "agent.tests.a", seconds: 0.75 },
      { path: "agent.tests.b", seconds: 2 },
    ],
    seconds: 2.75,
  });
});

test("a report without cases has no passed tests", () => {
  expect(tallyPytest("<testsuites></testsuites>")).toMatchObject({ passed: 0, failed: 0 });
});
