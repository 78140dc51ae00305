import { z } from "zod";
import { createAgentBridge } from "../agent-bridge";
import { type Api, createApi } from "../api";
import { once } from "../platform/concurrency/once";
import { describeApi, type OpenApiDocument } from "../platform/http/openapi";
import { type Route, route } from "../platform/http/route";
import type { Context } from "../services/context";
import { createLoops } from "../services/loops";
import { metricsRoute } from "./metrics";

/** Version of the HTTP API. A breaking change needs a new major version. */
const API_VERSION = "1.0.0";

const DESCRIPTION = `Forge runs machine-learning jobs on GPU workers, which poll for work. Each job ends exactly once. A completed
job has one bill and one manifest.

Send the key as \`X-Service-Api-Key\` or \`Authorization: Bearer\`. Lists are newest first: \`limit\`, and
\`after\` with the \`next_cursor\` of the page before. All errors have the same form, with a stable \`code\`. Every path
is also served without \`/api\`, and with a trailing slash.`;

/** Tells the health check routes whether the server is ready. */
export interface Health {
  isReady(): Promise<boolean>;
}

interface Routes {
  routes: Route[];
  /** The OpenAPI document. It is built on the first call, because most processes never need it. */
  document: () => OpenApiDocument;
}

/** Every route of a server, including its OpenAPI document. */
export function allRoutes(
  api: Pick<Api, "routes">,
  bridge: Route[],
  health: Health,
  metrics: Route,
): Routes {
  const routes = [...api.routes, ...bridge, ...healthRoutes(health), metrics];
  const document = once(() =>
    describeApi(routes, { title: "Forge", version: API_VERSION, description: DESCRIPTION }),
  );
  routes.push(
    route({
      method: "GET",
      paths: ["/openapi.json"],
      scope: "user",
      operationId: "getOpenApi",
      tag: "Service",
      summary: "This document",
      responses: {
        200: { description: "OpenAPI 3.1", schema: z.record(z.string(), z.unknown()) },
      },
      handle: async () => document(),
    }),
  );
  return { routes, document };
}

/** The OpenAPI document that a server with this context would serve. Starts nothing. */
export const documentOfServer = (ctx: Context): OpenApiDocument =>
  allRoutes(
    createApi(ctx),
    createAgentBridge(ctx, createLoops(ctx)),
    { isReady: async () => true },
    metricsRoute(ctx),
  ).document();

function healthRoutes(health: Health): Route[] {
  const ok = z.object({ ok: z.literal(true) });
  const readiness = z.object({ ready: z.boolean() });
  return [
    route({
      method: "GET",
      paths: ["/healthz"],
      scope: "open",
      operationId: "isAlive",
      tag: "Service",
      summary: "Whether the process answers",
      responses: { 200: { description: "the process answers", schema: ok } },
      handle: async () => ({ ok: true }),
    }),
    route({
      method: "GET",
      paths: ["/readyz"],
      scope: "open",
      operationId: "isReady",
      tag: "Service",
      summary: "Check readiness: the database answers, and the server is not stopping",
      responses: {
        200: { description: "the server is ready", schema: readiness },
        503: { description: "the server is not ready", schema: readiness },
      },
      async handle({ reply }) {
        const ready = await health.isReady();
        if (!ready) reply.code(503).header("retry-after", 2);
        return { ready };
      },
    }),
  ];
}
