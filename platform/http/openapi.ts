import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { Route, SuccessResponse } from "./route";

type Json = Record<string, unknown>;

/** The parts of an OpenAPI 3.1 document that this code base reads. */
export interface OpenApiDocument extends Json {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Json; [more: string]: unknown };
}

export interface Operation extends Json {
  operationId: string;
  /** The minimum scope. */
  "x-forge-scope": string;
  parameters: { name: string; in: string; required: boolean; schema: Json }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Json; examples?: Json }> };
  responses: Record<string, Json>;
}

interface Info {
  title: string;
  version: string;
  description: string;
}

/** Descriptions of the error responses, by status. */
const REFUSALS: Record<number, string> = {
  400: "the request is invalid; `param` names the field",
  402: "the budget is spent",
  403: "no valid key, or its scope does not suffice",
  404: "not found, or another tenant's",
  408: "the body did not arrive in time",
  409: "the request conflicts with the current state",
  413: "the body is too large",
  415: "this Content-Type is not supported",
  416: "the range lies beyond the end",
  422: "the Idempotency-Key was used with another request",
  429: "too many requests; `Retry-After` says when to retry",
  502: "a server behind this one closed the connection",
  504: "a server behind this one did not answer in time",
  503: "a service that Forge needs is unavailable; `Retry-After` says when to retry",
};

/** Builds the OpenAPI document from the routes' schemas, with canonical paths only. */
export function describeApi(routes: Route[], info: Info): OpenApiDocument {
  const schemas: Json = {};
  const paths: OpenApiDocument["paths"] = {};
  for (const route of routes.filter((one) => !one.undocumented)) {
    const path = openApiPath(route);
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = describeRoute(route, routes, schemas);
  }
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: "/" }],
    security: [{ ServiceApiKey: [] }, { Bearer: [] }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { ...schemas, Error: toSchema(errorBody, "output", schemas) },
      securitySchemes: {
        ServiceApiKey: { type: "apiKey", in: "header", name: "X-Service-Api-Key" },
        Bearer: { type: "http", scheme: "bearer" },
      },
    },
  };
}

const errorBody = z
  .object({
    error: z.object({
      code: z.string().describe("a stable error code in snake_case"),
      message: z.string().describe("for people to read"),
      param: z.string().optional().describe("the invalid field, parameter or header"),
      request_id: z.string().describe("the same as in the header x-request-id"),
      details: z.record(z.string(), z.unknown()).optional(),
    }),
  })
  .describe("Every error; as application/problem+json (RFC 9457) if the client accepts that");

/** The canonical path with parameters in braces. A wildcard becomes the parameter `path`. */
const openApiPath = (route: Route): string =>
  route.paths[0].replace("/*", "/:path").replaceAll(/:([a-z_]+)/g, "{$1}");

function describeRoute(route: Route, routes: Route[], schemas: Json): Operation {
  const requestBody = describeBody(route, schemas);
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    ...(route.scope === "open" ? { security: [] } : {}),
    "x-forge-scope": route.scope,
    parameters: [
      ...describePathParameters(route),
      ...describeFields(route.query, "query", schemas),
      ...describeFields(z.object(route.headers ?? {}), "header", schemas),
    ],
    ...(requestBody ? { requestBody } : {}),
    responses: { ...describeAnswers(route, routes, schemas), ...describeRefusals(route) },
  };
}

function describePathParameters(route: Route): Operation["parameters"] {
  return namesIn(route).map((name) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string", minLength: 1 },
  }));
}

const namesIn = (route: Route): string[] =>
  [...openApiPath(route).matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => name ?? "");

function describeFields(
  fields: z.ZodType | undefined,
  where: "query" | "header",
  schemas: Json,
): Operation["parameters"] {
  if (!fields) return [];
  const { properties = {}, required = [] } = toSchema(fields, "input", schemas) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: where,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema,
  }));
}

function describeBody(route: Route, schemas: Json): (Operation["requestBody"] & Json) | undefined {
  if (route.stream) {
    const { acceptsAnyBody = false } = route.stream;
    const schema = acceptsAnyBody
      ? {}
      : { type: "string", contentEncoding: "binary", minLength: 1 };
    return {
      required: !acceptsAnyBody,
      description: route.stream.description,
      content: Object.fromEntries(route.stream.contentTypes.map((type) => [type, { schema }])),
    };
  }
  if (!route.body) return undefined;
  return {
    required: !route.body.optional,
    content: {
      "application/json": {
        schema: toSchema(route.body.schema, "input", schemas),
        examples: mapValues(route.body.examples, (value) => ({ value })),
      },
    },
  };
}

function describeAnswers(route: Route, routes: Route[], schemas: Json): Record<string, Json> {
  return mapValues(route.responses, (answer, status) => {
    const links = status === "201" ? linksFrom(answer, routes) : {};
    return {
      description: answer.description,
      ...describeHeaders(answer),
      ...describeContent(answer, schemas),
      ...(Object.keys(links).length > 0 ? { links } : {}),
    };
  });
}

const mapValues = <Value, Mapped>(
  values: Record<string, Value>,
  map: (value: Value, key: string) => Mapped,
): Record<string, Mapped> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value, key)]));

function describeHeaders({ headers }: SuccessResponse): Json {
  if (!headers) return {};
  const schema = { type: "string" };
  return { headers: mapValues(headers, (description) => ({ description, schema })) };
}

function describeContent({ schema, content }: SuccessResponse, schemas: Json): Json {
  const bodies = content ?? (schema ? { "application/json": schema } : {});
  if (Object.keys(bodies).length === 0) return {};
  return {
    content: mapValues(bodies, (body) => ({ schema: toSchema(body, "output", schemas) })),
  };
}

/**
 * Builds the OpenAPI links of a response with a created object. They lead to all operations whose
 * only path parameter has the name of a field of the object.
 */
function linksFrom(answer: SuccessResponse, routes: Route[]): Json {
  if (!(answer.schema instanceof z.ZodObject)) return {};
  const fields = Object.keys(answer.schema.shape);
  const documented = routes.filter((target) => !target.undocumented);
  const targets = documented.flatMap((target) => {
    const [name, ...more] = namesIn(target);
    return name !== undefined && more.length === 0 && fields.includes(name)
      ? [[target.operationId, { operationId: target.operationId, parameters: link(name) }]]
      : [];
  });
  return Object.fromEntries(targets);
}

const link = (name: string): Json => ({ [name]: `$response.body#/${name}` });

function describeRefusals(route: Route): Record<string, Json> {
  const codes: Record<number, string[]> = { ...route.errorCodes };
  const may = (status: number, ...more: string[]): void => {
    codes[status] = [...new Set([...more, ...(codes[status] ?? [])])];
  };
  const hasBody = route.body !== undefined || route.stream !== undefined;
  if (route.scope !== "open" || route.query) {
    may(400, "invalid_request", ...(route.body ? ["malformed_json"] : []));
    may(503, "unavailable");
  }
  if (route.scope !== "open") {
    may(403, "invalid_api_key", "insufficient_scope");
    may(429, "rate_limited", "quota_exceeded");
  }
  if (hasBody) {
    may(408, "request_timeout");
    may(413, "body_too_large");
    if (!route.stream?.acceptsAnyBody) may(415, "unsupported_media_type");
  }
  if (route.headers && "Idempotency-Key" in route.headers) {
    may(409, "request_in_flight");
    may(422, "idempotency_key_reused");
  }
  return mapValues(codes, (words, status) => ({
    description: `${REFUSALS[Number(status)] ?? "refused"}: ${words.map((word) => `\`${word}\``).join(", ")}`,
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
  }));
}

/** Converts a zod schema to JSON Schema. Schemas with an id become components. */
function toSchema(schema: z.ZodType, io: "input" | "output", schemas: Json): Json {
  const {
    $schema: _,
    $defs = {},
    ...own
  } = z.toJSONSchema(schema, {
    io,
    target: "draft-2020-12",
    override: ({ jsonSchema }) => {
      // Responses may have unknown fields, because later releases may add some.
      if (io === "output" && jsonSchema.additionalProperties === false) {
        delete jsonSchema.additionalProperties;
      }
      // Drop the limits of safe integers, which zod adds to each integer. Readers do not need them.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    },
  });
  const moved = (part: unknown): Json =>
    JSON.parse(JSON.stringify(part).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
  for (const [name, part] of Object.entries($defs)) {
    const { id: __, ...rest } = part as Json;
    const described = moved(rest);
    // One component can't describe a schema that has different forms in requests and responses. For
    // example, only the form in requests may refuse unknown fields.
    if (name in schemas && !isDeepStrictEqual(schemas[name], described)) {
      throw new Error(`the schema ${name} is described in two ways`);
    }
    schemas[name] = described;
  }
  return moved(own);
}

/** A header of every POST that creates an object. */
export const idempotencyHeader = {
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("for 24 hours, a repeated request with the same key returns the first answer"),
};
