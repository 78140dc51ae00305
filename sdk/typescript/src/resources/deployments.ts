import { ForgeError } from "../errors.ts";
import type { Listing, ListOptions } from "../listing.ts";
import type { OfUser, RequestOptions, TimeSpan } from "../options.ts";
import { get, path, post, type Request } from "../request.ts";
import { TransientFailure } from "../retry-policy.ts";
import type { Deployment, DeploymentDetail, DeploymentStats, Operations } from "../schema.ts";
import { EventDecoder, type ServerSentEvent } from "../sse.ts";
import { Resource } from "./resource.ts";

/** Time-out for a response: a model may compute for a long time before it responds. */
const ANSWER_MS = 600_000;

export interface DeploymentFilters extends ListOptions, OfUser {
  status?: Deployment["status"] | readonly Deployment["status"][] | undefined;
}

/** `client.deployments`. */
export class Deployments extends Resource {
  /** Lists deployments, newest first. `limit`: maximum number in total. */
  list(filters: DeploymentFilters = {}, options?: RequestOptions): Listing<Deployment> {
    return this.listing({ path: "/api/deployments", name: "deployments", query: filters, options });
  }

  /** Reads a deployment with its placements. */
  async get(deploymentId: string, options?: RequestOptions): Promise<DeploymentDetail> {
    return await this.transport.json(get(path`/api/deployments/${deploymentId}`), options);
  }

  /** Reads request, error and token counts, and latencies. Default: the last 24 hours. */
  async stats(
    deploymentId: string,
    query: TimeSpan & OfUser = {},
    options?: RequestOptions,
  ): Promise<DeploymentStats> {
    return await this.transport.json(
      get(path`/api/deployments/${deploymentId}/stats`, query),
      options,
    );
  }

  /** Stops the deployment and its billing. */
  async stop(deploymentId: string, options?: RequestOptions): Promise<DeploymentDetail> {
    return await this.transport.json(post(path`/api/deployments/${deploymentId}/stop`), options);
  }

  /** Changes the number of replicas. */
  async scale(
    deploymentId: string,
    replicas: Operations["scaleDeployment"]["body"],
    options?: RequestOptions,
  ): Promise<DeploymentDetail> {
    const address = path`/api/deployments/${deploymentId}`;
    return await this.transport.json({ method: "PATCH", path: address, body: replicas }, options);
  }

  /**
   * Sends a request to the model: `ask(id, "chat/completions", { messages: […] })`.
   *
   * `method` defaults to GET without a body, else to POST. Requests other than GET are not retried
   * if they may have reached the model.
   */
  async ask<T extends object = Record<string, unknown>>(
    deploymentId: string,
    question: string,
    body?: object | null,
    { method, ...options }: RequestOptions & { method?: "GET" | "POST" | "DELETE" } = {},
  ): Promise<T> {
    return await this.transport.json(asked(deploymentId, question, body, method), options);
  }

  /**
   * Sends a POST to the model. Yields the server-sent events of the response.
   *
   * The parameters are those of `ask`. `body` must request a stream: `{ stream: true, … }`.
   */
  async *stream(
    deploymentId: string,
    question: string,
    body: object,
    options?: RequestOptions,
  ): AsyncGenerator<ServerSentEvent, void, undefined> {
    const decoder = new EventDecoder();
    const request = asked(deploymentId, question, body, "POST");
    try {
      const opened = await this.transport.open(request, options);
      try {
        for await (const chunk of opened.chunks) yield* decoder.feed(chunk);
      } finally {
        opened.close();
      }
    } catch (error) {
      throw error instanceof TransientFailure ? error.final : error;
    }
  }
}

function asked(
  deploymentId: string,
  question: string,
  body?: object | null,
  method?: string,
): Request {
  const names = question.replace(/^\/+|(?<!\/)\/+$/g, "").split("/");
  // A URL can't represent lone surrogates.
  if (names.some((name) => /^\.*$|[\p{Cc}\p{Cs}]/u.test(name))) {
    const shown = JSON.stringify(question);
    throw new ForgeError(`${shown} is not a valid path below a deployment's address`);
  }
  const way = method ?? (body == null ? "GET" : "POST");
  return {
    method: way,
    path: `${path`/api/deployments/${deploymentId}`}/v1/${names.map(encodeURIComponent).join("/")}`,
    body: body ?? undefined,
    isRepeatable: way === "GET",
    minTimeoutMs: ANSWER_MS,
  };
}
