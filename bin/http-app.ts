import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import cors from "@fastify/cors";
import helmet from "@fastify/helmet";
import fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from "fastify";
import type { Principal } from "../core/accounts/permissions";
import { ForgeError } from "../core/errors";
import { sendConnectionError, sendError } from "../platform/http/errors";
import { lingerOnClose } from "../platform/http/lingering-close";
import { oneAtATime } from "../platform/http/one-at-a-time";
import { lazyChild } from "../platform/http/request-log";
import type { Route } from "../platform/http/route";
import { addRoutes, noRoute, routeOf } from "../platform/http/routing";
import { addSite, isForSite, type Site, sendUndecodable } from "../platform/http/site";
import { limitSlowBodies } from "../platform/http/slow-bodies";
import { newId } from "../platform/ids";
import { MIN_CLIENT_RELEASE, RELEASE } from "../platform/release";
import { AdmissionControl } from "../services/accounts/admission-control";
import { recordAudit } from "../services/accounts/audit";
import type { Context } from "../services/context";

declare module "fastify" {
  interface FastifyRequest {
    /**
     * The caller, identified by the request's key. Not set if the route is `open`, or the key is
     * invalid.
     */
    principal: Principal;
  }
  interface FastifyContextConfig {
    /** Requests to this route need no key. */
    open?: boolean;
    /** A page for browsers, which needs other security headers. */
    page?: boolean;
    route?: Route;
  }
}

/** Public files by path. The content is read or computed on the first request. */
export type OpenFiles = Record<string, { contentType: string; content: () => Buffer | string }>;

/** Headers of responses that are not pages, so that no browser renders or executes them. */
const NO_PAGE = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
  "referrer-policy": "no-referrer",
};

/** Clients compare their own release with these headers. */
const RELEASES = { "x-forge-version": RELEASE, "x-forge-min-client": MIN_CLIENT_RELEASE };

const FOR_PAGES = {
  // "upgrade-insecure-requests" would break the pages if Forge is served over plain HTTP.
  contentSecurityPolicy: { directives: { "upgrade-insecure-requests": null } },
};

/**
 * An idle connection is closed after this time. Load balancers usually close idle connections
 * earlier, so they never send a request on a connection that this server is closing.
 */
const KEEP_ALIVE_MS = 72_000;

const VALID_REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * Creates the HTTP application. A request passes authentication, limits and its route. One error
 * handler answers all errors.
 */
export async function createApp(
  ctx: Context,
  routes: Route[],
  openFiles: OpenFiles,
  site?: Site,
): Promise<FastifyInstance> {
  const { http } = ctx.config;
  const admission = new AdmissionControl(ctx);
  const sendFailure = async (error: Error, request: FastifyRequest, reply: FastifyReply) => {
    if (await admission.mayAnswer(error, request)) {
      const code = sendError(error, request, reply);
      ctx.metrics.refusals.inc({ route: labelOf(request), code });
    } else destroyConnection(request, reply);
  };
  const app = fastify({
    ...serverOptions(ctx),
    // Fastify runs no hooks for a path that can't be decoded, so check the key here.
    frameworkErrors: (_error, request, reply) => {
      if (site && isForSite(site, request)) {
        sendUndecodable(site, request, reply);
        return;
      }
      admission
        .principalOf(request)
        .then(() => sendFailure(noRoute(request, routes), request, reply))
        .catch((error: Error) => sendFailure(error, request, reply));
    },
  });
  if (http.corsOrigins.length > 0) await app.register(cors, corsOptions(http.corsOrigins));
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    await sendFailure(error, request, reply);
    return reply;
  });
  app.setNotFoundHandler((request, reply) => {
    throw noRoute(request, routes, reply);
  });
  lingerOnClose(app.server);
  app.server.on("checkExpectation", (message: IncomingMessage, answer: ServerResponse) => {
    // Ignore unknown Expect headers.
    delete message.headers.expect;
    app.server.emit("request", message, answer);
  });
  addBodyParsers(app, admission);
  app.decorateRequest("principal");
  addHooks(app, ctx, admission);
  limitSlowBodies(app, http.requestTimeoutS);
  if (ctx.logger.isLevelEnabled("debug")) logResponses(app);
  await addPages(app, openFiles);
  if (site) addSite(app, site);
  addRoutes(app, routes, ctx.connectionQueues);
  return app;
}

function serverOptions({ logger, clock, config }: Context): FastifyHttpOptions<Server> {
  const { http } = config;
  return {
    loggerInstance: logger as FastifyBaseLogger,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: "request_id",
    }),
    childLoggerFactory: lazyChild,
    bodyLimit: http.maxBodyBytes,
    requestIdHeader: false,
    trustProxy: http.trustedProxies,
    genReqId: (request) => {
      const given = request.headers["x-request-id"];
      return typeof given === "string" && VALID_REQUEST_ID.test(given) ? given : newId("req");
    },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    clientErrorHandler: sendConnectionError,
    serverFactory: (handle) =>
      createServer(
        {
          keepAliveTimeout: KEEP_ALIVE_MS,
          // No limit here: slow-bodies.ts limits how long a body may take.
          requestTimeout: 0,
          headersTimeout: http.requestTimeoutS * 1000,
          connectionsCheckingInterval: 1_000,
          // `addHooks` checks the Host header, because Node's own error response has no body.
          requireHostHeader: false,
        },
        oneAtATime(handle, clock.nowMs),
      ),
    forceCloseConnections: "idle",
    return503OnClosing: true,
  };
}

function addHooks(app: FastifyInstance, ctx: Context, admission: AdmissionControl): void {
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id).headers(RELEASES);
    if (!request.routeOptions.config.page) reply.headers(NO_PAGE);
    if (request.routeOptions.config.open) return;
    const principal = await admission.principalOf(request);
    request.principal = principal;
    ctx.traffic.lastRequestMs = ctx.clock.nowMs();
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") {
      throw new ForgeError(400, "malformed_request", "the Host header is missing", "Host");
    }
    await admission.admit(request, reply);
    // The client may have disconnected while the request waited.
    if (request.raw.socket.destroyed) {
      destroyConnection(request, reply);
      return;
    }
    if (isAdminChange(request)) {
      const subject = `${request.method} ${request.raw.url?.split("?", 1)[0] ?? ""}`;
      await recordAudit(ctx.pool, { userId: null, action: "admin_request", subject, principal });
    }
  });
  // This hook is not async. A promise would delay every response, including those of deployed
  // models.
  app.addHook("onSend", (request, _reply, payload, done) => {
    if (typeof payload === "string") admission.chargeResponse(request, payload.length);
    done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    const route = labelOf(request);
    ctx.metrics.requests.inc({ route, status: reply.statusCode });
    ctx.metrics.requestSeconds.observe({ route }, reply.elapsedTime / 1000);
    done();
  });
}

/** Adds the pages in a separate Fastify scope, so that helmet runs for pages only. */
async function addPages(app: FastifyInstance, openFiles: OpenFiles): Promise<void> {
  await app.register(async (pages) => {
    await pages.register(helmet, FOR_PAGES);
    for (const [path, file] of Object.entries(openFiles)) {
      pages.get(path, { config: { open: true, page: true } }, async (_request, reply) =>
        reply.type(file.contentType).header("cache-control", "no-cache").send(file.content()),
      );
    }
  });
}

/** Closes the connection without a response. */
function destroyConnection(request: FastifyRequest, reply: FastifyReply): void {
  reply.hijack();
  request.raw.socket.destroy();
}

/** A valid `x-forge-client` header: the name and release of a Forge client, such as an SDK. */
const VALID_CLIENT = /^[a-z-]{1,32}\/[0-9A-Za-z.+-]{1,32}$/;

/** Logs one line per request, at debug level only, because workers send many heartbeats. */
function logResponses(app: FastifyInstance): void {
  app.addHook("onResponse", async (request, reply) => {
    const client = request.headers["x-forge-client"];
    const answered = {
      method: request.method,
      path: pathOf(request),
      status: reply.statusCode,
      ms: reply.elapsedTime,
      ...(typeof client === "string" && VALID_CLIENT.test(client) ? { client } : {}),
    };
    request.log.debug(answered, "answered");
  });
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
      "range",
      "x-checksum-sha256",
      "x-forge-client",
      "x-request-id",
      "x-service-api-key",
    ],
    exposedHeaders: [
      "content-range",
      "etag",
      "idempotency-replayed",
      "ratelimit-limit",
      "ratelimit-policy",
      "ratelimit-remaining",
      "ratelimit-reset",
      "retry-after",
      "x-forge-min-client",
      "x-forge-version",
      "x-request-id",
    ],
    methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    maxAge: 600,
    strictPreflight: false,
  };
}

/**
 * Replaces Fastify's body parsers. AdmissionControl parses JSON bodies. Other bodies stay streams,
 * for the routes that declare them (routing.ts).
 */
function addBodyParsers(app: FastifyInstance, admission: AdmissionControl): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    async (request: FastifyRequest, bytes: Buffer) => await admission.read(request, bytes),
  );
  app.addContentTypeParser("*", (_request, stream, done) => done(null, stream));
}

/**
 * Returns the label of a request in metrics: its route's method and first path. So there are only
 * as many labels as routes.
 */
function labelOf(request: FastifyRequest): string {
  const route = routeOf(request);
  return route ? `${route.method} ${route.paths[0]}` : "none";
}

function pathOf(request: FastifyRequest): string {
  return request.url.split("?", 1)[0] ?? request.url;
}

/**
 * Whether an admin key's request changes something through a route for users or admins. Such a
 * request is in the audit log even if it is refused later.
 */
function isAdminChange(request: FastifyRequest): boolean {
  const scope = routeOf(request)?.scope;
  const changes = request.method !== "GET" && request.method !== "HEAD";
  return changes && request.principal.scope === "admin" && (scope === "user" || scope === "admin");
}
