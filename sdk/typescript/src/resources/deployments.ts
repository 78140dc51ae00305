import { ForgeError } from "../errors.ts";
import type { Listing, ListOptions } from "../listing.ts";
import type { RequestOptions, TimeSpan } from "../options.ts";
import { get, path, post, type Request } from "../request.ts";
import { Passing } from "../retries.ts";
import type { Deployment, DeploymentDetail, DeploymentStats, Operations } from "../schema.ts";
import { EventDecoder, type ServerSentEvent } from "../sse.ts";
import { Resource } from "./resource.ts";

/** A model may think for long before it says a word. */
const ANSWER_MS = 600_000;

export interface DeploymentFilters extends ListOptions {
  status?: Deployment["status"] | readonly Deployment["status"][] | undefined;
  user_id?: string | undefined;
}

/** `client.deployments`. */
export class Deployments extends Resource {
  /** Deployments, newest first; `limit` is how many in all. */
  list(filters: DeploymentFilters = {}, options?: RequestOptions): Listing<Deployment> {
    return this.listing({ path: "/api/deployments", name: "deployments", query: filters, options });
  }

  /** A deployment, and where it has run. */
  async get(deploymentId: string, options?: RequestOptions): Promise<DeploymentDetail> {
    return await this.transport.json(get(path`/api/deployments/${deploymentId}`), options);
  }

  /** What it was asked over the last day: requests, errors, latency and tokens. */
  async stats(
    deploymentId: string,
    query: TimeSpan & { user_id?: string | undefined } = {},
    options?: RequestOptions,
  ): Promise<DeploymentStats> {
    return await this.transport.json(
      get(path`/api/deployments/${deploymentId}/stats`, query),
      options,
    );
  }

  /** Ends it, and its bill. */
  async stop(deploymentId: string, options?: RequestOptions): Promise<DeploymentDetail> {
    return await this.transport.json(post(path`/api/deployments/${deploymentId}/stop`), options);
  }

  /** Changes how many serve it. */
  async scale(
    deploymentId: string,
    replicas: Operations["scaleDeployment"]["body"],
    options?: RequestOptions,
  ): Promise<DeploymentDetail> {
    const address = path`/api/deployments/${deploymentId}`;
    return await this.transport.json({ method: "PATCH", path: address, body: replicas }, options);
  }

  /**
   * Asks the model: `ask(id, "chat/completions", { messages: […] })`.
   *
   * It is not asked again once the question may have arrived.
   */
  async ask<T extends object = Record<string, unknown>>(
    deploymentId: string,
    question: string,
    body?: object | null,
    { method, ...options }: RequestOptions & { method?: "GET" | "POST" | "DELETE" } = {},
  ): Promise<T> {
    return await this.transport.json(asked(deploymentId, question, body, method), options);
  }

  /** The same, for an answer in server-sent events, as of `{ stream: true }`. */
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
      throw error instanceof Passing ? error.final : error;
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
  // Lone surrogates have no form in an address.
  if (names.some((name) => /^\.*$|[\p{Cc}\p{Cs}]/u.test(name))) {
    const shown = JSON.stringify(question);
    throw new ForgeError(`${shown} is not a path below a deployment's address`);
  }
  const way = method ?? (body == null ? "GET" : "POST");
  return {
    method: way,
    path: `${path`/api/deployments/${deploymentId}`}/v1/${names.map(encodeURIComponent).join("/")}`,
    body: body ?? undefined,
    isRepeatable: way === "GET",
    answerMs: ANSWER_MS,
  };
}
