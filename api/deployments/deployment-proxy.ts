import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { z } from "zod";
import { type TenantScope, tenantScopeOf } from "../../core/accounts/permissions";
import { ForgeError, InvalidRequest } from "../../core/errors";
import {
  answerHeaders,
  type Forwarding,
  forward,
  NotReached,
  tooLarge,
} from "../../platform/http/forward";
import { type AnyCall, type Route, route } from "../../platform/http/route";
import { EVENT_STREAM } from "../../platform/http/sse";
import type { Context } from "../../services/context";
import { findDeployments, type ShownDeploymentRow } from "../../services/deployments/deployments";
import { deploymentStopped } from "../../services/deployments/scale-deployment";
import { listTargets } from "../../services/deployments/serving-targets";
import { requireOne } from "../require-one";
import type { DeploymentRequests } from "./deployment-requests";

const METHODS = ["GET", "POST", "DELETE"] as const;

/**
 * The routes of a deployment's stable address. They forward a request to one of the deployment's
 * servers. The servers can run on any workers.
 */
export function deploymentProxyRoutes(ctx: Context, requests: DeploymentRequests): Route[] {
  return METHODS.map((method) =>
    route({
      method,
      paths: ["/api/deployments/:deployment_id/v1/*"],
      scope: "user",
      outsideConnectionQueue: true,
      operationId: `ask${method[0]}${method.slice(1).toLowerCase()}`,
      tag: "Deployments",
      summary: `Send a ${method} request to a deployed model`,
      description:
        "The request is forwarded to one of the deployment's servers, with its query and body. The reference " +
        "server speaks OpenAI's protocol (`/chat/completions`, `/models`). Bodies stream both ways. The API " +
        "key and cookies are not forwarded.",
      query: z.looseObject({}),
      ...(method === "GET"
        ? {}
        : {
            stream: {
              contentTypes: ["application/json"],
              acceptsAnyBody: true,
              description: "any body that the model's server accepts, of any content type",
            } as const,
          }),
      responses: {
        200: {
          description: "the answer of the model's server, which may also have any other status",
          content: { "application/json": z.unknown(), [EVENT_STREAM]: z.string() },
        },
      },
      errorCodes: {
        400: ["ambiguous_id"],
        404: ["deployment_not_found"],
        409: ["deployment_stopped"],
        413: ["body_too_large"],
        429: ["rate_limited"],
        502: ["deployment_failed"],
        503: ["deployment_unavailable"],
        504: ["deployment_timeout"],
      },
      async handle(call) {
        const { answer, body } = await proxy(ctx, requests, call);
        const { reply } = call;
        reply
          .code(answer.statusCode ?? 502)
          // Tells nginx not to buffer the response.
          .header("x-accel-buffering", "no")
          .headers(answerHeaders(answer.headers))
          .send(body);
        // Send the headers now. By default, they wait for the first chunk of the body, which may
        // take long.
        if (!reply.raw.headersSent) reply.raw.flushHeaders();
        return reply;
      },
    }),
  );
}

type ProxyCall = AnyCall & { params: Record<string, string> };

interface Proxied {
  answer: IncomingMessage;
  /** The response body to send to the caller. */
  body: Readable;
}

async function proxy(
  ctx: Context,
  requests: DeploymentRequests,
  call: ProxyCall,
): Promise<Proxied> {
  const { request, principal, params } = call;
  const rest = restOf(request.raw.url ?? "");
  const deployment = await findTarget(ctx, params.deployment_id ?? "", tenantScopeOf(principal));
  const { deployment_id: id, artifact_id: shownId, status } = deployment;
  if (status !== "active") throw deploymentStopped(shownId, status);
  const { maxBodyBytes, timeoutMs } = ctx.config.deployments.proxy;
  if (Number(request.headers["content-length"] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  const { signal } = ctx.waitingRequests.register(request, principal, call.reply);
  const given: Omit<Forwarding, "addresses" | "token"> = {
    method: request.method,
    headers: request.headers,
    body: request.body,
    maxBodyBytes,
    timeoutMs,
    requestId: request.id,
    signal,
  };
  const counted = requests.begin(id);
  try {
    const answer = await forwardToServers(ctx, deployment, { rest, request, given });
    return { answer, body: counted.answered(answer, signal) };
  } catch (error) {
    // Don't count errors of the caller as failures of the model: the caller may have disconnected,
    // or sent a body that is too large.
    if (!signal.aborted && isServersFault(error)) counted.failed();
    throw error;
  }
}

const isServersFault = (error: unknown): boolean =>
  error instanceof ForgeError && error.status >= 500;

interface ServerRequest {
  /** The path below the deployment's address, with its query string. */
  rest: string;
  request: ProxyCall["request"];
  given: Omit<Forwarding, "addresses" | "token">;
}

/** Forwards the request to the first server of the deployment that is reachable. */
async function forwardToServers(
  ctx: Context,
  { deployment_id: id, artifact_id: shownId }: ShownDeploymentRow,
  { rest, request, given }: ServerRequest,
): Promise<IncomingMessage> {
  let refusal: string | undefined;
  const targets = await listTargets(ctx.pool, id);
  for (const { inference_url: base, token, worker_address, hosts } of targets) {
    const target = targetOf(base, rest);
    if (!target) continue;
    const server = { url: target, workerAddress: worker_address, hosts };
    const addresses = ctx.config.deployments.addresses.policyFor(server);
    if (typeof addresses === "string") {
      refusal = addresses;
      continue;
    }
    try {
      return await forward(target, { ...given, addresses, token });
    } catch (error) {
      if (!(error instanceof NotReached)) throw error;
      request.log.warn({ deployment_id: id, err: error.message }, "model server unreachable");
    }
  }
  const why = refusal ?? "no server is reachable; it is being placed again";
  const message = `deployment "${shownId}" is unavailable: ${why}`;
  throw new ForgeError(503, "deployment_unavailable", message);
}

/**
 * Finds the deployment by the id in the path: an artifact id or a storage id. Several tenants can
 * have a deployment with the same artifact id. On other routes, an admin selects the tenant with
 * the query parameter `user_id`. This route forwards its query string to the model. So an admin
 * uses the storage id, which is unique. If the id in the path is the storage id of one deployment
 * and the artifact id of another deployment, the storage id takes precedence.
 */
async function findTarget(
  ctx: Context,
  id: string,
  tenantScope: TenantScope,
): Promise<ShownDeploymentRow> {
  const found = await findDeployments(ctx.pool, id, tenantScope);
  const stored = found.filter(({ storage_id: storageId }) => storageId === id);
  return requireOne("deployment", id, stored.length > 0 ? stored : found, "storage_id");
}

/** The unchanged path below the deployment's address. @throws 400 for `.` and `..` segments. */
function restOf(url: string): string {
  const rest = /^(?:\/api)?\/deployments\/[^/]*\/v1(\/.*)?$/.exec(url)?.[1] ?? "/";
  const segments = (rest.split("?", 1)[0] ?? "").split(/\/|\\|%2f|%5c/i);
  if (segments.some((segment) => /^(\.|%2e){1,2}$/i.test(segment))) {
    throw new InvalidRequest('the path must not contain "." or ".."', "path");
  }
  return rest;
}

/**
 * The URL to forward a request to. Undefined if the address that the worker reported is not an HTTP
 * URL.
 */
function targetOf(base: string, rest: string): URL | undefined {
  if (!URL.canParse(base)) return undefined;
  const url = new URL(base);
  if (!["http:", "https:"].includes(url.protocol)) return undefined;
  return new URL(`${url.origin}${url.pathname.replace(/(?<!\/)\/+$/, "")}${rest}`);
}
