import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { OpenApiDocument } from "../../platform/http/openapi";
import { checkoutRoot } from "../stack/paths";
import { findBreakingChanges } from "./breaking-changes";

const copy = readFileSync(join(checkoutRoot(), "docs", "openapi.json"), "utf8");

/** A changed copy of the committed document. */
function changed(change: (document: OpenApiDocument) => void): OpenApiDocument {
  const document = JSON.parse(copy) as OpenApiDocument;
  change(document);
  return document;
}

/** Returns a nested part of a document, for a test to change. */
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

test("an unchanged document and additions break nothing", () => {
  expect(compare(() => undefined)).toEqual([]);
  const more = compare((document) => {
    document.paths["/api/new"] = structuredClone(document.paths["/healthz"] ?? {});
    at(document, "components", "schemas", "Job", "properties").cost = { type: "number" };
    at(document, ...AUDIT_BODY, "properties").extra = { type: "string" };
  });
  expect(more).toEqual([]);
});

const ESTIMATE_BODY = [
  "paths",
  "/api/billing/estimate",
  "post",
  "requestBody",
  "content",
  "application/json",
  "schema",
];

test("a new form between others breaks nothing, and one that is gone is named", () => {
  const formsOf = (document: OpenApiDocument) =>
    at(document, ...ESTIMATE_BODY).anyOf as Record<string, unknown>[];
  const more = compare((document) => {
    const form = structuredClone(formsOf(document)[0] ?? {});
    at(form, "properties", "job_type").const = "another";
    formsOf(document).splice(1, 0, form);
  });
  expect(more).toEqual([]);
  const fewer = compare((document) => formsOf(document).splice(1, 1));
  expect(fewer).toContain(
    'POST /api/billing/estimate: body: the form with job_type: "audit" is gone',
  );
});

test.each<[string, (document: OpenApiDocument) => void, RegExp]>([
  ["an operation", (d) => delete d.paths["/api/jobs"]?.get, /^GET \/api\/jobs was removed$/],
  [
    "a field of an answer",
    (d) => delete at(d, "components", "schemas", "Job", "properties").error_code,
    /GET \/api\/jobs\/\{job_id\}: 200: error_code was removed/,
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
    /POST \/api\/jobs\/audit: body: notes was removed/,
  ],
  [
    "a smaller maximum",
    (d) => {
      at(d, ...AUDIT_BODY, "properties", "priority").maximum = 5;
    },
    /priority: maximum is 5 now/,
  ],
  [
    "a list that must not be empty",
    (d) => {
      at(d, ...AUDIT_BODY, "properties", "tags").minItems = 1;
    },
    /tags: minItems is 1 now/,
  ],
  [
    "a list of allowed values",
    (d) => {
      at(d, ...AUDIT_BODY, "properties", "notes").enum = ["a", "b"];
    },
    /notes: nothing but a, b is accepted now/,
  ],
  [
    "a single allowed value",
    (d) => {
      at(d, ...AUDIT_BODY, "properties", "notes").const = "a";
    },
    /notes: nothing but a is accepted now/,
  ],
  [
    "a value of a list",
    (d) => {
      const body = at(d, "paths", "/api/auth/api-keys", "post", "requestBody", "content");
      const scope = at(body, "application/json", "schema", "properties", "scope");
      Object.assign(scope, { enum: undefined, const: "user" });
    },
    /POST \/api\/auth\/api-keys: body.scope: worker is refused now/,
  ],
  [
    "an exclusive maximum",
    (d) => {
      at(d, ...AUDIT_BODY, "properties", "priority").exclusiveMaximum = 100;
    },
    /priority: exclusiveMaximum is 100 now/,
  ],
  [
    "a parameter",
    (d) =>
      at(d, "paths", "/api/jobs", "get", "parameters", 0).name &&
      d.paths["/api/jobs"]?.get?.parameters.shift(),
    /GET \/api\/jobs: parameter limit was removed/,
  ],
  [
    "an operation's name",
    (d) => {
      at(d, "paths", "/api/jobs", "get").operationId = "jobs";
    },
    /was renamed from listJobs/,
  ],
  [
    "a success status",
    (d) => delete at(d, "paths", "/api/jobs/audit", "post", "responses")["201"],
    /POST \/api\/jobs\/audit no longer responds with 201/,
  ],
])("%s", (_what, change, says) => {
  expect(compare(change).join("\n")).toMatch(says);
});
