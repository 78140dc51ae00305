import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { z } from "zod";
import type { TenantScope } from "../../core/accounts/principal";
import { tenantScopeOf } from "../../core/accounts/principal";
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
import { listTargets } from "../../services/deployments/placements";
import { requireOne } from "../accounts/one-tenants";
import type { DeploymentRequests } from "./deployment-requests";
import { deploymentStopped } from "./deployments";

const METHODS = ["GET", "POST", "DELETE"] as const;

/**
 * A deployment's stable address: whatever is asked below it goes to one of its servers, wherever these
 * run now, and the answer comes back as it is made.
 */
export function deploymentProxyRoutes(ctx: Context, requests: DeploymentRequests): Route[] {
  return METHODS.map((method) =>
    route({
      method,
      paths: ["/api/deployments/:deployment_id/v1/*"],
      scope: "user",
      waits: true,
      operationId: `ask${method[0]}${method.slice(1).toLowerCase()}`,
      tag: "Deployments",
      summary: `${method} something of a deployed model`,
      description:
        "Passed on to one of its servers, with its query and body: the reference server speaks OpenAI's " +
        "protocol (`/chat/completions`, `/models`). Bodies stream both ways. Neither the API key nor " +
        "cookies are passed on.",
      query: z.looseObject({}),
      ...(method === "GET"
        ? {}
        : {
            stream: {
              contentTypes: ["application/json"],
              isAnything: true,
              description: "whatever the model's server takes, of any content type",
            } as const,
          }),
      answers: {
        200: {
          description: "what the model's server answers; it may answer with any other status too",
          content: { "application/json": z.unknown(), [EVENT_STREAM]: z.string() },
        },
      },
      refusals: {
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
        const { answer, body } = await ask(ctx, requests, call);
        const { reply } = call;
        reply
          .code(answer.statusCode ?? 502)
          // For nginx: pass on each token as it comes.
          .header("x-accel-buffering", "no")
          .headers(answerHeaders(answer.headers))
          .send(body);
        // Not only with the first piece of the body: that may be long in coming.
        if (!reply.raw.headersSent) reply.raw.flushHeaders();
        return reply;
      },
    }),
  );
}

type ProxyCall = AnyCall & { params: Record<string, string> };

interface Asked {
  answer: IncomingMessage;
  /** What is sent on of it. */
  body: Readable;
}

async function ask(ctx: Context, requests: DeploymentRequests, call: ProxyCall): Promise<Asked> {
  const { request, principal, params } = call;
  const rest = restOf(request.raw.url ?? "");
  const deployment = await findAsked(ctx, params.deployment_id ?? "", tenantScopeOf(principal));
  const { deployment_id: id, artifact_id: shownId, status } = deployment;
  if (status !== "active") throw deploymentStopped(shownId, status);
  const { maxBodyBytes, timeoutMs } = ctx.config.deployments.proxy;
  if (Number(request.headers["content-length"] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  const { signal } = ctx.waitingRequests.park(request, principal, call.reply);
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
    const answer = await askServers(ctx, deployment, { rest, request, given });
    return { answer, body: counted.answered(answer, signal) };
  } catch (error) {
    // Who has gone, or sent too much, is answered by no server for another reason than the model's.
    if (!signal.aborted && isServersFault(error)) counted.failed();
    throw error;
  }
}

const isServersFault = (error: unknown): boolean =>
  error instanceof ForgeError && error.status >= 500;

interface Question {
  /** The path below the deployment's own, with its query. */
  rest: string;
  request: ProxyCall["request"];
  given: Omit<Forwarding, "addresses" | "token">;
}

/** Asks the first of its servers that can be reached. */
async function askServers(
  ctx: Context,
  { deployment_id: id, artifact_id: shownId }: ShownDeploymentRow,
  { rest, request, given }: Question,
): Promise<IncomingMessage> {
  let refusal: string | undefined;
  for (const { inference_url: base, token, worker_address, hosts } of await listTargets(
    ctx.pool,
    id,
  )) {
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
      request.log.warn({ deployment_id: id, err: error.message }, "a model can't be reached");
    }
  }
  const why = refusal ?? "it has no server that answers right now; it is being placed again";
  throw new ForgeError(
    503,
    "deployment_unavailable",
    `deployment "${shownId}" can't be asked: ${why}`,
  );
}

/** An admin can't name the tenant, for the query is the model's: of several, the one whose storage id it is. */
async function findAsked(
  ctx: Context,
  id: string,
  tenantScope: TenantScope,
): Promise<ShownDeploymentRow> {
  const found = await findDeployments(ctx.pool, id, tenantScope);
  const stored = found.filter(({ storage_id: storageId }) => storageId === id);
  return requireOne("deployment", id, stored.length > 0 ? stored : found);
}

/** What follows the deployment's own path, as it was sent. No step may lead out of it. */
function restOf(url: string): string {
  const rest = /^(?:\/api)?\/deployments\/[^/]*\/v1(\/.*)?$/.exec(url)?.[1] ?? "/";
  const steps = (rest.split("?", 1)[0] ?? "").split(/\/|\\|%2f|%5c/i);
  if (steps.some((step) => /^(\.|%2e){1,2}$/i.test(step))) {
    throw new InvalidRequest('the path may not have "." or ".." in it', "path");
  }
  return rest;
}

/** Undefined for what a worker calls an address and is none for us. */
function targetOf(base: string, rest: string): URL | undefined {
  if (!URL.canParse(base)) return undefined;
  const url = new URL(base);
  if (!["http:", "https:"].includes(url.protocol)) return undefined;
  return new URL(`${url.origin}${url.pathname.replace(/(?<!\/)\/+$/, "")}${rest}`);
}
