import { DEPLOYMENT_TYPE } from "../../deployments/workflow";
import { typesWhere } from "../job-types";
import { parseSubmission } from "../payloads";
import { DECLARATIONS } from "./index";

const unique = (values: readonly string[]): string[] => [...new Set(values)];

test("names and artifact kinds are unique", () => {
  const types = DECLARATIONS.map(({ type }) => type);
  expect(types).toEqual(unique(types));
  const kinds = DECLARATIONS.map(({ artifact }) => artifact.kind);
  expect(kinds).toEqual(unique(kinds));
});

test("exactly one type creates deployments, and it has the name that workflows use", () => {
  expect(typesWhere(({ completion }) => completion === "deployment")).toEqual([DEPLOYMENT_TYPE]);
});

test.each(
  DECLARATIONS.flatMap(({ type, examples }) =>
    Object.entries(examples).map(([name, body]) => [type, name, body] as const),
  ),
)("%s: the example %s is a valid submission", (type, _name, body) => {
  expect(parseSubmission(type, body, { teacher: "default" }).payload).not.toEqual({});
});
