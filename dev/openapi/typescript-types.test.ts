import type { OpenApiDocument } from "../../platform/http/openapi";
import { typescriptTypes } from "./typescript-types";

const TEXT = { type: "string" };

const documentOf = (schemas: Record<string, unknown>, paths: unknown = {}): OpenApiDocument =>
  ({ paths, components: { schemas } }) as OpenApiDocument;

const typeOf = (schema: unknown): string =>
  /export type T = (.*?);\n\n/s.exec(typescriptTypes(documentOf({ T: schema })))?.[1] ?? "none";

test.each([
  [{ type: "integer" }, "number"],
  [{ type: ["string", "null"] }, "string | null"],
  [{ anyOf: [{ $ref: "#/components/schemas/Other" }, { type: "null" }] }, "Other | null"],
  [{ type: "string", enum: ["a", "b"] }, '"a" | "b" | (string & {})'],
  [{ type: "integer", enum: [1, 2] }, "1 | 2"],
  [{ type: "string", const: "dataset" }, '"dataset"'],
  [{ type: "array", items: TEXT }, "string[]"],
  [{ type: "array", items: { type: ["string", "null"] } }, "Array<string | null>"],
  [{ type: "object", additionalProperties: {} }, "Record<string, unknown>"],
  [{ type: "object", additionalProperties: { type: "number" } }, "Record<string, number>"],
  [{}, "unknown"],
])("%j is %s", (schema, type) => expect(typeOf(schema)).toBe(type));

test("an object becomes an interface with required and optional fields", () => {
  const thing = {
    type: "object",
    properties: { id: TEXT, "odd-name": { ...TEXT, description: "ends */ early" } },
    required: ["id"],
    additionalProperties: {},
  };
  expect(typescriptTypes(documentOf({ Thing: thing }))).toContain(
    [
      "export interface Thing {",
      "  id: string;",
      "  /** ends * / early */",
      '  "odd-name"?: string;',
      "  [field: string]: unknown;",
      "}",
    ].join("\n"),
  );
});

test("an operation has its query, and its JSON body and answer", () => {
  const json = (schema: unknown) => ({ content: { "application/json": { schema } } });
  const operation = {
    operationId: "find",
    parameters: [
      { name: "id", in: "path", required: true, schema: TEXT },
      { name: "tag", in: "query", required: false, schema: TEXT },
    ],
    requestBody: json({ $ref: "#/components/schemas/Thing" }),
    responses: { 400: json(TEXT), 201: json({ type: "array", items: TEXT }) },
  };
  const mute = { operationId: "mute", parameters: [], responses: { 204: {} } };
  const text = typescriptTypes(documentOf({}, { "/x/{id}": { get: operation, post: mute } }));
  expect(text).toContain(
    [
      "export interface Operations {",
      "  find: {",
      "    query: {",
      "      tag?: string;",
      "    };",
      "    body: Thing;",
      "    answer: string[];",
      "  };",
      "}",
    ].join("\n"),
  );
});
