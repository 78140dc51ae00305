import helmet from "@fastify/helmet";
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from "fastify";
import { ForgeError } from "../../core/errors";
import type { Scope } from "../api-keys";
import type { Context } from "../context";
import { newId } from "../ids";
import { checkBody } from "./body";
import { sendError } from "./errors";
import { authenticate, type Principal, requireScope } from "./principal";

/** A route: one canonical path first, then its aliases. */
export interface Route {
  method: "GET" | "POST" | "DELETE";
  /** Each is served with and without /api, with and without a trailing slash. */
  paths: [canonical: string, ...aliases: string[]];
  /** The least scope that may call it. A route without one does not compile. */
  scope: Scope;
  handle(request: ForgeRequest, reply: FastifyReply): Promise<unknown>;
}

export interface ForgeRequest extends FastifyRequest {
  principal: Principal;
}

/** What can be asked without a key: whether the server is up, and nothing else. */
export interface Health {
  isReady(): Promise<boolean>;
}

const OPEN_PATHS = new Set(["/healthz", "/readyz"]);
const SANE_REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The HTTP application: keys first, then routes, then one error handler. */
export async function createApp(
  ctx: Context,
  routes: Route[],
  health: Health,
): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: ctx.logger as FastifyBaseLogger,
    // One line a request at debug level only: a thousand heartbeating workers are not news.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: "request_id",
    }),
    bodyLimit: ctx.config.http.maxBodyBytes,
    requestIdHeader: false,
    genReqId: (request) => {
      const given = request.headers["x-request-id"];
      return typeof given === "string" && SANE_REQUEST_ID.test(given) ? given : newId("req");
    },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    // A path that can't be decoded has no route to run the hooks of; the key still comes first.
    frameworkErrors: (_error, request, reply) => {
      authenticate(ctx.pool, request.headers)
        .then(() => sendError(noRoute(request), request, reply))
        .catch((error: Error) => sendError(error, request, reply));
    },
    forceCloseConnections: "idle",
    return503OnClosing: true,
    // Rejects bodies that set __proto__ or constructor.
    onProtoPoisoning: "error",
  });
  await app.register(helmet);
  app.removeContentTypeParser("text/plain");
  app.setErrorHandler(sendError);
  app.setNotFoundHandler((request) => {
    throw noRoute(request);
  });
  app.decorateRequest("principal");

  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    if (OPEN_PATHS.has(pathOf(request))) return;
    (request as ForgeRequest).principal = await authenticate(ctx.pool, request.headers);
  });
  app.addHook("preValidation", async (request) => {
    checkBody(request.body, ctx.config.http.maxJsonDepth);
  });
  app.addHook("onResponse", async (request, reply) => {
    request.log.debug(
      {
        method: request.method,
        path: pathOf(request),
        status: reply.statusCode,
        ms: reply.elapsedTime,
      },
      "answered",
    );
  });

  app.get("/healthz", async () => ({ ok: true }));
  app.get("/readyz", async (_request, reply) => {
    const ready = await health.isReady();
    if (!ready) reply.code(503).header("retry-after", 2);
    return { ready };
  });
  for (const route of routes) addRoute(app, route);
  return app;
}

function addRoute(app: FastifyInstance, route: Route): void {
  const paths = new Set(
    route.paths.flatMap((path) => [path, path.startsWith("/api/") ? path.slice(4) : `/api${path}`]),
  );
  for (const url of paths) {
    app.route({
      method: route.method,
      url,
      onRequest: async (request) => requireScope((request as ForgeRequest).principal, route.scope),
      handler: async (request, reply) => await route.handle(request as ForgeRequest, reply),
    });
  }
}

function noRoute(request: FastifyRequest): ForgeError {
  return new ForgeError(404, "route_not_found", `there is no ${request.method} ${pathOf(request)}`);
}

function pathOf(request: FastifyRequest): string {
  return request.url.split("?", 1)[0] ?? request.url;
}
