import type { OpenApiDocument, Operation } from "../../platform/http/openapi";

/** A JSON schema, as far as zod writes them. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  description?: string;
}

const HEAD = `// Written by \`npm run openapi -- --write\` from docs/openapi.json: don't edit it here.
//
// A later server may add fields and values: sets of texts are open, and what is not named here is
// there all the same.
`;

/**
 * The document's schemas as interfaces, and \`Operations\`: query, body and answer of each operation.
 *
 * Generators that one can install close every enumeration, and need a compiler older than ours.
 */
export function typescriptTypes(document: OpenApiDocument): string {
  const schemas = Object.entries(document.components.schemas as Record<string, Schema>);
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  return [
    HEAD,
    ...schemas.map(([name, schema]) => `${comment(schema)}${declaration(name, schema)}\n`),
    "/** What each operation takes and gives, where that is JSON. */",
    "export interface Operations {",
    ...operations.flatMap((operation) => {
      const parts = exchange(operation);
      return parts ? [indented(`${operation.operationId}: ${parts};`)] : [];
    }),
    "}\n",
  ].join("\n");
}

function declaration(name: string, schema: Schema): string {
  const type = typeOf(schema);
  return schema.properties && !schema.anyOf
    ? `export interface ${name} ${type}`
    : `export type ${name} = ${type};`;
}

function exchange(operation: Operation): string | undefined {
  const query = operation.parameters.filter((each) => each.in === "query");
  const answer = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
  const body = jsonOf(operation.requestBody);
  const result = jsonOf(answer?.[1]);
  const parts = {
    ...(query.length > 0 && {
      query: object({
        properties: Object.fromEntries(query.map((each) => [each.name, each.schema as Schema])),
        required: query.filter((each) => each.required).map((each) => each.name),
      }),
    }),
    ...(body && { body: typeOf(body) }),
    ...(result && { answer: typeOf(result) }),
  };
  const lines = Object.entries(parts).map(([name, type]) => `${name}: ${type};`);
  return lines.length > 0 ? braced(lines) : undefined;
}

function jsonOf(message: unknown): Schema | undefined {
  const { content } = (message ?? {}) as { content?: Record<string, { schema?: Schema }> };
  return content?.["application/json"]?.schema;
}

function typeOf(schema: Schema): string {
  if (schema.$ref) return schema.$ref.slice("#/components/schemas/".length);
  if ("const" in schema) return JSON.stringify(schema.const);
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return union(either.map(typeOf));
  if (schema.enum) {
    const isOpen = schema.enum.some((value) => typeof value === "string");
    return union([...schema.enum.map((value) => JSON.stringify(value)), ...(isOpen ? [TEXT] : [])]);
  }
  const types = [schema.type ?? "unknown"].flat();
  return union(types.map((type) => single(type, schema)));
}

/** Any other text: written so, an editor still offers the known ones. */
const TEXT = "(string & {})";

function single(type: string, schema: Schema): string {
  switch (type) {
    case "integer":
      return "number";
    case "array": {
      const items = schema.items ? typeOf(schema.items) : "unknown";
      return /^[\w.]+$/.test(items) ? `${items}[]` : `Array<${items}>`;
    }
    case "object":
      return object(schema);
    default:
      return type;
  }
}

function object(schema: Schema): string {
  const { properties = {}, required = [], additionalProperties: others } = schema;
  const names = Object.keys(properties);
  const rest = typeof others === "object" ? typeOf(others) : "unknown";
  if (names.length === 0) return `Record<string, ${rest}>`;
  const fields = Object.entries(properties).map(([name, field]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    return `${comment(field)}${key}${required.includes(name) ? "" : "?"}: ${typeOf(field)};`;
  });
  return braced(others ? [...fields, "[field: string]: unknown;"] : fields);
}

const union = (types: string[]): string => [...new Set(types)].join(" | ");

const braced = (lines: string[]): string => `{\n${lines.map(indented).join("\n")}\n}`;

const indented = (text: string): string => text.replace(/^(?=.)/gm, "  ");

const comment = ({ description }: Schema): string =>
  description ? `/** ${description.replaceAll("*/", "* /")} */\n` : "";
