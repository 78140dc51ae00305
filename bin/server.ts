import { join } from "node:path";
import { TemporalWorkerComponent } from "../activities/worker";
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
 * Creates a server in one of its roles. It stops in this order: no new requests, waiting polls are
 * answered, open requests end, the loops stop, the Temporal worker drains, the connections close.
 */
export async function createServer(
  ctx: Context,
  role: Role,
  onListening: (url: string) => void,
): Promise<Service> {
  const loops = createLoops(ctx);
  const api = createApi(ctx);
  const components: Component[] = [
    { name: "context", start: () => ctx.signals.start(), stop: () => closeContext(ctx) },
    ctx.waitingRequests,
  ];
  const attributes = new Loop("search-attributes", ATTRIBUTES_MS, registerAttributesOnce(ctx), ctx);
  components.push({
    name: "attributes",
    start: () => attributes.start(),
    stop: () => attributes.stop(),
  });
  // The fleet monitor also checks the database's clock. The role "worker" has no fleet monitor, so
  // it checks the clock in a separate loop.
  if (role === "worker") {
    const watch = new Loop("clock-watch", CLOCK_MS, () => ctx.clockWatch.check(), ctx);
    components.push({ name: "clock-watch", start: () => watch.start(), stop: () => watch.stop() });
  }
  if (role !== "api") components.push(new TemporalWorkerComponent(ctx, WORKFLOW_BUNDLE));
  components.push(ctx.tables, ...loops.components, ...api.components);
  if (role !== "worker") components.push(...loops.watch);
  const serves =
    role === "worker"
      ? NO_API_ROUTES
      : { api, bridge: createAgentBridge(ctx, loops), site: dashboard() };
  components.push(await httpComponent(ctx, serves, onListening));
  return new Service(components, ctx.logger);
}

const ATTRIBUTES_MS = 5_000;
const CLOCK_MS = 2_000;

/**
 * Returns a function that registers Temporal's search attributes. After one success, further calls
 * do nothing. Servers of every role call this function in a loop, because any process may start the
 * first workflow.
 */
function registerAttributesOnce(ctx: Context): () => Promise<void> {
  let done = false;
  return async () => {
    if (!done) await registerSearchAttributes(ctx.temporal);
    done = true;
  };
}

const IDLE_SWEEP_MS = 100;
/**
 * When the server stops, open requests get this much time to end. After that, the server closes all
 * connections.
 */
const GRACE_MS = 5_000;

interface Served {
  api: Pick<Api, "routes">;
  bridge: Route[];
  site?: Site | undefined;
}

/**
 * A server of the role "worker" has no API and no dashboard. It serves only health checks, metrics,
 * and an API reference that describes only these routes.
 */
const NO_API_ROUTES: Served = { api: { routes: [] }, bridge: [] };

async function httpComponent(
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
      // A client may keep its connection open, so close each connection once its last response has
      // ended.
      const sweep = setInterval(() => app.server.closeIdleConnections(), IDLE_SWEEP_MS);
      const grace = setTimeout(() => app.server.closeAllConnections(), GRACE_MS);
      await app.close();
      clearInterval(sweep);
      clearTimeout(grace);
    },
  };
}
