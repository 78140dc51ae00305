import { join } from "node:path";
import { TemporalWorkerPart } from "../activities/worker";
import { createAgentBridge } from "../agent-bridge";
import { type Api, createApi } from "../api";
import type { Route } from "../platform/http/route";
import type { Site } from "../platform/http/site";
import { Loop } from "../platform/loop";
import { maybeOne } from "../platform/postgres/pool";
import { type Component, Service } from "../platform/service";
import { registerSearchAttributes } from "../platform/temporal/client";
import { type Context, closeContext } from "../services/context";
import { createLoops } from "../services/loops";
import { apiReference } from "./api-reference";
import { dashboard } from "./dashboard";
import { createApp } from "./http-app";
import { metricsRoute } from "./metrics";
import { allRoutes } from "./routes";

export type Role = "api" | "worker" | "all";

const WORKFLOW_BUNDLE = join(__dirname, "..", "workflow-bundle.js");

/**
 * A server in one of its roles. Parts start from the bottom up and stop from the top down: first
 * nobody gets in, then parked polls are answered and open requests end, then the loops, then the
 * Temporal worker drains, and the connections close last.
 */
export async function createServer(
  ctx: Context,
  role: Role,
  onListening: (url: string) => void,
): Promise<Service> {
  const loops = createLoops(ctx);
  const api = createApi(ctx);
  const parts: Component[] = [
    { name: "context", start: () => ctx.signals.start(), stop: () => closeContext(ctx) },
    ctx.waitingRequests,
  ];
  const attributes = new Loop("search-attributes", ATTRIBUTES_MS, makeAttributesKnown(ctx), ctx);
  parts.push({
    name: "attributes",
    start: () => attributes.start(),
    stop: () => attributes.stop(),
  });
  // In the other roles the fleet monitor looks.
  if (role === "worker") {
    const watch = new Loop("clock-watch", CLOCK_MS, () => ctx.clockWatch.look(), ctx);
    parts.push({ name: "clock-watch", start: () => watch.start(), stop: () => watch.stop() });
  }
  if (role !== "api") parts.push(new TemporalWorkerPart(ctx, WORKFLOW_BUNDLE));
  parts.push(ctx.tables, ...loops.parts, ...api.parts);
  if (role !== "worker") parts.push(...loops.watch);
  const serves =
    role === "worker" ? NOTHING : { api, bridge: createAgentBridge(ctx, loops), site: dashboard() };
  parts.push(await httpPart(ctx, serves, onListening));
  return new Service(parts, ctx.logger);
}

const ATTRIBUTES_MS = 5_000;
const CLOCK_MS = 2_000;

/** Whatever its role, a process may be the first to start a workflow; and Temporal may be away until later. */
function makeAttributesKnown(ctx: Context): () => Promise<void> {
  let done = false;
  return async () => {
    if (!done) await registerSearchAttributes(ctx.temporal);
    done = true;
  };
}

const IDLE_SWEEP_MS = 100;
/** Requests under way have so long to end; a connection that says nothing would wait for ever. */
const GRACE_MS = 5_000;

interface Served {
  api: Pick<Api, "routes">;
  bridge: Route[];
  site?: Site | undefined;
}

/** A Temporal worker says only whether it is up, and what it counts. */
const NOTHING: Served = { api: { routes: [] }, bridge: [] };

async function httpPart(
  ctx: Context,
  { api, bridge, site }: Served,
  onListening: (url: string) => void,
): Promise<Component> {
  let stopping = false;
  const isReady = async (): Promise<boolean> => {
    if (stopping) return false;
    return await maybeOne(ctx.pool, "select 1 as ok").then(
      () => true,
      () => false,
    );
  };
  const { routes, document } = allRoutes(api, bridge, { isReady }, metricsRoute(ctx));
  const app = await createApp(ctx, routes, apiReference(document), site);
  return {
    name: "http",
    async start() {
      const { host, port } = ctx.config.http;
      onListening(await app.listen({ host, port }));
    },
    async stop() {
      stopping = true;
      ctx.waitingRequests.close();
      // A connection whose last answer ends only now is kept alive by its client, and would hold us up.
      const sweep = setInterval(() => app.server.closeIdleConnections(), IDLE_SWEEP_MS);
      const grace = setTimeout(() => app.server.closeAllConnections(), GRACE_MS);
      await app.close();
      clearInterval(sweep);
      clearTimeout(grace);
    },
  };
}
