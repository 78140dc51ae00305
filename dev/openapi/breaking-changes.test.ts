import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { OpenApiDocument } from "../../platform/http/openapi";
import { checkoutRoot } from "../stack/paths";
import { findBreakingChanges } from "./breaking-changes";

const copy = readFileSync(join(checkoutRoot(), "docs", "openapi.json"), "utf8");

/** The committed document, changed. */
function changed(change: (document: OpenApiDocument) => void): OpenApiDocument {
  const document = JSON.parse(copy) as OpenApiDocument;
  change(document);
  return document;
}

/** A place deep in a document, for a test to change. */
function at(part: unknown, ...path: (string | number)[]): Record<string, unknown> {
  const found = path.reduce((inner, key) => (inner as Record<string, unknown>)[key], part);
  if (typeof found !== "object" || found === null) throw new Error(`nothing at ${path.join(".")}`);
  return found as Record<string, unknown>;
}

const compare = (change: (document: OpenApiDocument) => void): string[] =>
  findBreakingChanges(JSON.parse(copy) as OpenApiDocument, changed(change));

const AUDIT_BODY = [
  "paths",
  "/api/jobs/audit",
  "post",
  "requestBody",
  "content",
  "application/json",
  "schema",
];

test("nothing breaks where nothing changes, nor where only more is there", () => {
  expect(compare(() => undefined)).toEqual([]);
  const more = compare((document) => {
    document.paths["/api/new"] = structuredClone(document.paths["/healthz"] ?? {});
    at(document, "components", "schemas", "Job", "properties").cost = { type: "number" };
    at(document, ...AUDIT_BODY, "properties").extra = { type: "string" };
  });
  expect(more).toEqual([]);
});

test.each<[string, (document: OpenApiDocument) => void, RegExp]>([
  ["an operation", (d) => delete d.paths["/api/jobs"]?.get, /^GET \/api\/jobs is gone$/],
  [
    "a field of an answer",
    (d) => delete at(d, "components", "schemas", "Job", "properties").error_code,
    /GET \/api\/jobs\/\{job_id\}: 200: error_code is gone/,
  ],
  [
    "a field's type",
    (d) => {
      at(d, "components", "schemas", "Job", "properties", "attempts").type = "string";
    },
    /attempts: is "string" now, was "integer"/,
  ],
  [
    "a field that becomes optional",
    (d) => {
      at(d, "components", "schemas", "Job").required = [];
    },
    /job_id may be missing now/,
  ],
  [
    "a required field of a body",
    (d) => {
      at(d, ...AUDIT_BODY).required = ["dataset_uri", "notes"];
    },
    /POST \/api\/jobs\/audit: body: notes is required now/,
  ],
  [
    "a field of a body",
    (d) => delete at(d, ...AUDIT_BODY, "properties").notes,
    /POST \/api\/jobs\/audit: body: notes is gone/,
  ],
  [
    "a smaller maximum",
    (d) => {
      at(d, ...AUDIT_BODY, "properties", "priority").maximum = 5;
    },
    /priority: maximum is 5 now/,
  ],
  [
    "a parameter",
    (d) =>
      at(d, "paths", "/api/jobs", "get", "parameters", 0).name &&
      d.paths["/api/jobs"]?.get?.parameters.shift(),
    /GET \/api\/jobs: parameter limit is gone/,
  ],
  [
    "an operation's name",
    (d) => {
      at(d, "paths", "/api/jobs", "get").operationId = "jobs";
    },
    /no longer called listJobs/,
  ],
  [
    "a success status",
    (d) => delete at(d, "paths", "/api/jobs/audit", "post", "responses")["201"],
    /POST \/api\/jobs\/audit no longer answers 201/,
  ],
])("%s", (_what, change, says) => {
  expect(compare(change).join("\n")).toMatch(says);
});
