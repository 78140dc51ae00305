import { judgeNpm, judgePython } from "./audit";

test("npm's report: clean, vulnerable, and unknown", () => {
  expect(judgeNpm('{"vulnerabilities": {}}').verdict).toBe("clean");
  const found = judgeNpm('{"vulnerabilities": {"a": {"severity": "high", "range": "<2"}}}');
  expect(found).toEqual({ verdict: "vulnerable", text: "  high: a <2" });
  expect(judgeNpm('{"error": {"code": "ENOTFOUND"}}').verdict).toBe("unreachable");
  expect(judgeNpm("").verdict).toBe("unreachable");
});

test("pip-audit's report: clean, vulnerable, and unknown", () => {
  expect(
    judgePython('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}').verdict,
  ).toBe("clean");
  const found = '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}]}';
  expect(judgePython(found)).toEqual({ verdict: "vulnerable", text: "  CVE-1: a 1" });
  expect(judgePython("ServiceError").verdict).toBe("unreachable");
});
