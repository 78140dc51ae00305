import fc from "fast-check";
import { InvalidRequest } from "../errors";
import { checkCondition, evaluateCondition, explain, type GateFacts } from "./gate";

const facts: GateFacts = {
  result: { name: "a", ready: true, "odd name": 3 },
  scores: { overall: 0.62, by: { law: 0.9 } },
  quality: undefined,
  metrics: { loss: 2 },
};

test.each([
  ["scores.overall >= 0.6", true],
  ["scores.overall >= 0.7", false],
  ["scores.overall > 0.6 && scores.by.law > 0.8", true],
  ["scores.overall > 0.7 || metrics.loss < 3", true],
  ["!(metrics.loss < 3)", false],
  ["metrics.loss * 2 - 1 == 3", true],
  ["-metrics.loss < -1", true],
  ['result.name == "a" && result.ready == true', true],
  ['result["odd name"] != 4', true],
])("%s is %s", (text, passed) => {
  checkCondition(text);
  expect(evaluateCondition(text, facts)).toMatchObject({ passed });
});

test("a condition that can't be evaluated does not pass and says why", () => {
  const unknown = evaluateCondition("quality.clarity_mean > 0.5", facts);
  expect(unknown).toEqual({
    passed: false,
    values: { "quality.clarity_mean": null },
    error: "there is no quality.clarity_mean in its result",
  });
  expect(evaluateCondition('result.name > 3 || scores.overall > "x"', facts).error).toMatch(
    /is not a number/,
  );
  expect(evaluateCondition("metrics.loss / 0 > 1", facts)).toMatchObject({
    passed: false,
    error: "Infinity is not a number",
  });
  expect(evaluateCondition("!(metrics.loss / 0 - metrics.loss / 0 > 1)", facts).passed).toBe(false);
  expect(evaluateCondition("result.name && result.ready", facts).error).toMatch(
    /is not true or false/,
  );
  expect(explain("scores.overall >= 0.7", evaluateCondition("scores.overall >= 0.7", facts))).toBe(
    "scores.overall >= 0.7 does not hold: scores.overall is 0.62",
  );
});

test.each([
  "scores.overall",
  "1 + 2",
  "overall >= 0.7",
  "scores >= 0.7",
  "scores.overall >=",
  "scores.overall => 0.7",
  "scores.overall = 0.7",
  "scores.overall >= 0.7; 1",
  "f(scores.overall) > 1",
  "scores[result.name] > 1",
  "scores.overall > 0.5 ? true : false",
  "[1] == 1",
  "this.constructor == 1",
  "process.exit == 1",
  "scores.overall ** 2 > 1",
  "`x` == 1",
  "/x/ == 1",
])("%s is rejected", (text) => {
  expect(() => checkCondition(text)).toThrow(InvalidRequest);
});

test("any text is either rejected or evaluated, and never executed as code", () => {
  const word = fc.constantFrom(
    ...'scores.overall result.x constructor __proto__ .constructor ( ) [ ] > >= == && || ! - + 1 0.5 "a" this'.split(
      " ",
    ),
  );
  const texts = fc.oneof(
    fc.string(),
    fc.array(word).map((words) => words.join(" ")),
  );
  fc.assert(
    fc.property(texts, (text) => {
      try {
        checkCondition(text);
      } catch (error) {
        if (!(error instanceof InvalidRequest)) throw error;
        return;
      }
      expect(typeof evaluateCondition(text, facts).passed).toBe("boolean");
    }),
    { numRuns: 2_000 },
  );
});

test("inherited properties are not values of an object", () => {
  expect(evaluateCondition("result.constructor == 1", facts).values).toEqual({
    "result.constructor": null,
  });
  expect(evaluateCondition("scores.__proto__.x == 1", facts).values).toEqual({
    "scores.__proto__.x": null,
  });
});
