import type { IncomingMessage, ServerResponse } from "node:http";
import cors from "@fastify/cors";
import helmet from "@fastify/helmet";
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from "fastify";
import { ForgeError } from "../../core/errors";
import type { Context } from "../context";
import { newId } from "../ids";
import { parseJsonBody } from "./body";
import { sendConnectionError, sendError } from "./errors";
import { authenticate, type Principal } from "./principal";
import { RateLimiter } from "./rate-limit";
import type { Route } from "./route";
import { addRoutes, noRoute, routeOf } from "./routing";
import { limitSlowBodies } from "./slow-bodies";

declare module "fastify" {
  interface FastifyRequest {
    /** Set before anything else is looked at, but on the few open paths. */
    principal: Principal;
  }
  interface FastifyContextConfig {
    /** Answered without a key. */
    open?: boolean;
    route?: Route;
  }
}

/** Files that anybody may read, by path. */
export type OpenFiles = Record<string, { contentType: string; content: Buffer | string }>;

const SANE_REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The HTTP application: keys first, then limits, then routes, then one error handler. */
export async function createApp(
  ctx: Context,
  routes: Route[],
  openFiles: OpenFiles,
): Promise<FastifyInstance> {
  const { http } = ctx.config;
  const app = fastify({
    loggerInstance: ctx.logger as FastifyBaseLogger,
    // One line a request at debug level only: a thousand heartbeating workers are not news.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: "request_id",
    }),
    bodyLimit: http.maxBodyBytes,
    requestIdHeader: false,
    genReqId: (request) => {
      const given = request.headers["x-request-id"];
      return typeof given === "string" && SANE_REQUEST_ID.test(given) ? given : newId("req");
    },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    // A path that can't be decoded has no route to run the hooks of; the key still comes first.
    frameworkErrors: (_error, request, reply) => {
      authenticate(ctx.pool, request.raw)
        .then(() => sendError(noRoute(request, routes), request, reply))
        .catch((error: Error) => sendError(error, request, reply));
    },
    clientErrorHandler: sendConnectionError,
    http: {
      headersTimeout: http.requestTimeoutS * 1000,
      connectionsCheckingInterval: 1_000,
      // Node's own refusal has no body; ours follows below.
      requireHostHeader: false,
    },
    forceCloseConnections: "idle",
    return503OnClosing: true,
  });
  await app.register(helmet, {
    // "upgrade-insecure-requests" would break the pages where Forge is served by plain HTTP.
    contentSecurityPolicy: { directives: { "upgrade-insecure-requests": null } },
  });
  if (http.corsOrigins.length > 0) await app.register(cors, corsOptions(http.corsOrigins));
  app.setErrorHandler(sendError);
  app.setNotFoundHandler((request, reply) => {
    throw noRoute(request, routes, reply);
  });
  app.server.on("checkExpectation", (message: IncomingMessage, answer: ServerResponse) => {
    // Whoever expects what nobody knows is served as if he did not.
    delete message.headers.expect;
    app.server.emit("request", message, answer);
  });
  addBodyParsers(app, http.maxJsonDepth);
  app.decorateRequest("principal");

  const limiter = new RateLimiter(ctx.pool, http.rateLimit, ctx.clock.nowMs);
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    if (request.routeOptions.config.open) return;
    const principal = await authenticate(ctx.pool, request.raw);
    request.principal = principal;
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") {
      throw new ForgeError(400, "malformed_request", "the Host header is missing", "Host");
    }
    const isLimited = principal.scope === "user" && !routeOf(request)?.unlimited;
    if (isLimited) await limiter.admit(principal.keyId, reply);
  });
  limitSlowBodies(app, http.requestTimeoutS);
  app.addHook("onResponse", async (request, reply) => {
    const answered = {
      method: request.method,
      path: pathOf(request),
      status: reply.statusCode,
      ms: reply.elapsedTime,
    };
    request.log.debug(answered, "answered");
  });

  for (const [path, file] of Object.entries(openFiles)) {
    app.get(path, { config: { open: true } }, async (_request, reply) =>
      reply.type(file.contentType).header("cache-control", "no-cache").send(file.content),
    );
  }
  addRoutes(app, routes);
  return app;
}

function corsOptions(origins: string[]) {
  return {
    origin: origins,
    allowedHeaders: [
      "authorization",
      "content-type",
      "idempotency-key",
      "if-none-match",
      "last-event-id",
      "x-checksum-sha256",
      "x-request-id",
      "x-service-api-key",
    ],
    exposedHeaders: [
      "etag",
      "idempotency-replayed",
      "ratelimit-limit",
      "ratelimit-policy",
      "ratelimit-remaining",
      "ratelimit-reset",
      "retry-after",
      "x-request-id",
    ],
    methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    maxAge: 600,
    strictPreflight: false,
  };
}

/** JSON by our own parser; anything else passes as a stream, to the routes that take it (routing.ts). */
function addBodyParsers(app: FastifyInstance, maxDepth: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    async (_request: FastifyRequest, bytes: Buffer) => parseJsonBody(bytes, maxDepth),
  );
  app.addContentTypeParser("*", (_request, stream, done) => done(null, stream));
}

function pathOf(request: FastifyRequest): string {
  return request.url.split("?", 1)[0] ?? request.url;
}
