import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { requireScope } from "../../core/accounts/permissions";
import { ForgeError, InvalidRequest } from "../../core/errors";
import { SharedReads } from "../concurrency/shared-reads";
import type { ConnectionQueues } from "../postgres/connection-queues";
import { isStorable } from "./body";
import { mediaTypeOf, type Route } from "./route";
import { EVENT_STREAM } from "./sse";
import { didYouMean, parse } from "./validation";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"];

/** Every path of a route: the canonical path and the aliases, each with and without /api. */
function pathsOf(route: Route): string[] {
  const forms = route.paths.flatMap((path) => [
    path,
    path.startsWith("/api/") ? path.slice("/api".length) : `/api${path}`,
  ]);
  return [...new Set(forms)];
}

/** Adds routes. For each path, all other methods respond with 405 and an Allow header. */
export function addRoutes(app: FastifyInstance, routes: Route[], queues: ConnectionQueues): void {
  const allowed = new Map<string, { url: string; methods: Set<string> }>();
  const takesAnything = (route: Route): boolean => route.stream?.acceptsAnyBody === true;
  for (const route of routes) {
    for (const url of pathsOf(route)) {
      if (!takesAnything(route)) addRoute(app, route, url, queues);
      // Remove the parameters' names from the path, because routes with the same path may name a
      // parameter differently.
      const pattern = url.replaceAll(/:[a-z_]+/g, ":");
      const known = allowed.get(pattern) ?? { url, methods: new Set() };
      known.methods.add(route.method);
      if (route.method === "GET" && !isEndless(route)) known.methods.add("HEAD");
      allowed.set(pattern, known);
    }
  }
  // Routes that take any body are in a separate Fastify scope without body parsers.
  app.register(async (unparsed) => {
    unparsed.removeAllContentTypeParsers();
    unparsed.addContentTypeParser("*", (_request, stream, done) => done(null, stream));
    for (const route of routes.filter(takesAnything)) {
      for (const url of pathsOf(route)) addRoute(unparsed, route, url, queues);
    }
  });
  for (const { url, methods } of allowed.values()) {
    const allow = [...methods].join(", ");
    app.route({
      method: METHODS.filter((method) => !methods.has(method)),
      url,
      // Respond before the body is read.
      onRequest: async (request, reply) => {
        throw notAllowed(request, reply, allow);
      },
      handler: async () => undefined,
    });
  }
}

function addRoute(app: FastifyInstance, route: Route, url: string, queues: ConnectionQueues): void {
  const success = Number(Object.keys(route.responses)[0]);
  // Workers may be newer than the server: ignore their unknown parameters.
  const query = route.query ?? (route.scope === "worker" ? z.object({}) : z.strictObject({}));
  const repeatable = repeatableOf(query);
  const headers = route.headers && z.object(route.headers);
  const callOf = (request: FastifyRequest, reply: FastifyReply) => {
    const given = takeBody(route, request);
    return {
      principal: request.principal,
      params: storable(request.params as Record<string, string>),
      query: readQuery(query, repeatable, request),
      body: readBody(route, given),
      headers: headers ? readHeaders(headers, request) : {},
      request,
      reply,
    };
  };
  const queue = queues[route.scope === "worker" ? "worker" : "user"];
  const shared = route.sharesResult && new SharedReads<unknown>(() => queue.isStalled);
  app.route({
    method: route.method,
    url,
    config: { route, open: route.scope === "open" },
    exposeHeadRoute: route.method === "GET" && !isEndless(route),
    onRequest: async (request) => {
      if (route.scope !== "open") requireScope(request.principal, route.scope);
      requireContentType(route, request);
    },
    handler: async (request, reply) => {
      reply.code(success);
      const call = callOf(request, reply);
      if (route.scope === "open" || route.outsideConnectionQueue) return await route.handle(call);
      const { userId, scope } = call.principal;
      const handle = () => queue.run(userId, () => route.handle(call));
      if (!shared) return await handle();
      return await shared.get(JSON.stringify([userId, scope, call.params, call.query]), handle);
    },
  });
}

/** The declaration of the route that this request matched. */
export const routeOf = (request: FastifyRequest): Route | undefined =>
  request.routeOptions.config.route;

/** Whether a route streams events. It has no HEAD, because HEAD would wait for the stream's end. */
const isEndless = (route: Route): boolean =>
  Object.values(route.responses).some((answer) => EVENT_STREAM in (answer.content ?? {}));

function requireContentType(route: Route, request: FastifyRequest): void {
  const { headers, method } = request;
  if (method === "GET" || method === "HEAD") return;
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  if (encoding === undefined && (length === undefined || length === "0")) return;
  if (route.stream?.acceptsAnyBody) return;
  const takes = route.stream?.contentTypes ?? ["application/json"];
  if (takes.includes(mediaTypeOf(request))) return;
  const message = `send Content-Type: ${takes.join(" or ")}`;
  throw new ForgeError(415, "unsupported_media_type", message, "Content-Type");
}

/**
 * Checks parameters (texts or lists of texts, by name), and returns them unchanged. @throws 400 if
 * Postgres can't store one of the texts.
 */
function storable<Given extends Record<string, unknown>>(given: Given): Given {
  for (const [name, value] of Object.entries(given)) {
    if ([value].flat().every((text) => typeof text !== "string" || isStorable(text))) continue;
    throw new InvalidRequest(`"${name}" may not contain NUL or half a surrogate pair`, name);
  }
  return given;
}

function readQuery(schema: z.ZodType, repeatable: string[], request: FastifyRequest): unknown {
  const given = { ...(request.query as Record<string, unknown>) };
  for (const name of repeatable) {
    if (typeof given[name] === "string") given[name] = [given[name]];
  }
  storable(given);
  try {
    return parse(schema, given);
  } catch (error) {
    // For a repeated parameter, the schema's error names an array element such as "status.0". The
    // client must get the name that it sent: "status".
    const [name] = error instanceof InvalidRequest ? (error.param ?? "").split(".") : [];
    throw name && error instanceof InvalidRequest ? new InvalidRequest(error.message, name) : error;
  }
}

/**
 * Names of the parameters that may be repeated. Fastify gives one value as a string, which
 * readQuery turns into an array.
 */
function repeatableOf(schema: z.ZodType): string[] {
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape)
    .filter(([, field]) => field instanceof z.ZodOptional && field.unwrap() instanceof z.ZodArray)
    .map(([name]) => name);
}

function readHeaders(
  schema: z.ZodObject,
  request: FastifyRequest,
): Record<string, string | undefined> {
  const names = Object.keys(schema.shape);
  const sent = names.map((name) => [name, request.headers[name.toLowerCase()]]);
  return parse(schema, Object.fromEntries(sent)) as Record<string, string | undefined>;
}

/**
 * Removes the body from the request, so that its memory can be freed early: a parsed body may take
 * megabytes, and the handler uses a copy with the known fields only. The request itself is kept
 * longer: a poll waits for up to a minute, and a connection keeps a request until the next one.
 */
function takeBody(route: Route, request: FastifyRequest): unknown {
  const { body } = request;
  if (!route.stream) request.body = undefined;
  return body;
}

function readBody(route: Route, body: unknown): unknown {
  if (!route.body) return body;
  if (route.body.optional && body === undefined) return parse(route.body.schema, {});
  return route.body.parse ? route.body.parse(body) : parse(route.body.schema, body);
}

/**
 * The error for a request that no handler matches: 405 if a route has this path but not this
 * method, else 404 with the nearest known path.
 */
export function noRoute(
  request: FastifyRequest,
  routes: Route[],
  reply?: FastifyReply,
): ForgeError {
  const path = request.url.split("?", 1)[0] ?? request.url;
  const known = routes.filter((route) => !route.undocumented);
  const sameLength = known
    .flatMap((route) => pathsOf(route))
    .filter((one) => one.split("/").length === path.split("/").length);
  const filled = fillIn(path, sameLength);
  if (filled.includes(path) && reply) {
    const here = known.filter((route) => fillIn(path, pathsOf(route)).includes(path));
    return notAllowed(request, reply, [...new Set(here.map((route) => route.method))].join(", "));
  }
  const hint = didYouMean(path, filled);
  return new ForgeError(404, "route_not_found", `there is no ${request.method} ${path}${hint}`);
}

function notAllowed(request: FastifyRequest, reply: FastifyReply, allow: string): ForgeError {
  reply.header("allow", allow);
  const message = `this path does not support ${request.method}; use ${allow}`;
  return new ForgeError(405, "method_not_allowed", message);
}

/** Known paths, with their parameters replaced by the values in the request's path. */
function fillIn(path: string, known: string[]): string[] {
  const given = path.split("/");
  return known.map((one) =>
    one
      .split("/")
      .map((segment, at) => (segment.startsWith(":") ? (given[at] ?? segment) : segment))
      .join("/"),
  );
}
