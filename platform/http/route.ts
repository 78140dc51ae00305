import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Principal, Scope } from "../../core/accounts/permissions";
import type { Throttle } from "../concurrency/throttle";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The arguments of a handler. The route's schemas have parsed the query, body and headers. */
interface Call<Q, B> {
  principal: Principal;
  /** Path parameters, as text. */
  params: Record<string, string>;
  query: Q;
  body: B;
  /** The headers that the route declares, by declared name. */
  headers: Record<string, string | undefined>;
  request: FastifyRequest;
  reply: FastifyReply;
}

/** One of a route's success responses. */
export interface SuccessResponse {
  description: string;
  /** Schema of a JSON body. */
  schema?: z.ZodType;
  /** Schemas by content type, if the body is not only JSON. */
  content?: Record<string, z.ZodType>;
  headers?: Record<string, string>;
}

/** A JSON body. */
interface JsonBody<B> {
  /** The schema in the OpenAPI document. It also parses the body, unless `parse` is set. */
  schema: z.ZodType<B>;
  parse?: (body: unknown) => B;
  /** Valid bodies by name. The OpenAPI document shows them, and a test sends them. */
  examples: Record<string, unknown>;
  /** Whether the request may have no body. */
  optional?: boolean;
}

/** A streamed body with one of the content types. */
interface StreamedBody {
  contentTypes: readonly string[];
  /** Accepts every request: with any content type, without a content type, or without a body. */
  acceptsAnyBody?: true;
  description: string;
}

interface RouteSpec<Q, B> {
  method: Method;
  /** The canonical path first, then its aliases. Each is served with and without /api. */
  paths: [canonical: string, ...aliases: string[]];
  /** The minimum scope of a key; "open" needs no key. */
  scope: Scope | "open";
  /** Excluded from the rate limit. For routes of workers, which call as often as they need to. */
  skipsRateLimit?: true;
  /**
   * Looks up the key in a batch with the keys of other requests. For routes whose latency does not
   * matter.
   */
  batchedKeyLookup?: true;
  /**
   * Applies FairShare (fair-share.ts) to a route of workers: while the process is busy, requests of
   * the largest tenant wait. FairShare always applies to rate-limited requests of users.
   */
  fairShare?: true;
  /** Limits the rate of a tenant's requests, before their bodies are read. */
  throttle?: Throttle;
  /**
   * Runs the handler outside of the queue for database connections. For handlers that also wait for
   * something else: a file, a stream, or a statement that serves several requests. The queue then
   * limits only the statements that the handler passes to `connectionQueues`.
   */
  outsideConnectionQueue?: true;
  /**
   * Shares the handler's result between equal requests with keys of the same tenant and scope. If
   * such requests arrive during a run of the handler, they wait for its end, and then share the
   * next run. For lists that all open dashboards of a team read at the same moment. The handler may
   * use only `principal.userId`, `principal.scope`, `params` and `query`.
   */
  sharesResult?: true;
  /** The operation's name in the OpenAPI document and in generated SDKs. */
  operationId: string;
  /** The group in the OpenAPI document. */
  tag: string;
  summary: string;
  description?: string;
  /** Left out of the OpenAPI document: the route only responds with a helpful error. */
  undocumented?: true;
  query?: z.ZodType<Q>;
  body?: JsonBody<B>;
  stream?: StreamedBody;
  /** Schemas of the request headers that the route reads, by name. */
  headers?: Record<string, z.ZodType>;
  /** Success responses by status. The first status is the default. */
  responses: Record<number, SuccessResponse>;
  /** Error codes by status, in addition to those of every route. */
  errorCodes?: Record<number, string[]>;
  handle(call: Call<Q, B>): Promise<unknown>;
}

export interface Route extends Omit<RouteSpec<unknown, unknown>, "handle"> {
  handle(call: Call<unknown, unknown>): Promise<unknown>;
}

/** The parts of a call that helpers need, for any route. */
export type AnyCall = Pick<Call<unknown, unknown>, "request" | "reply" | "principal">;

type None = Record<string, never>;

/** Declares a route. The handler's argument types follow from the schemas. */
export function route<Q = None, B = undefined>(spec: RouteSpec<Q, B>): Route {
  return spec as unknown as Route;
}

/** The request's content type, without its parameters. */
export const mediaTypeOf = ({ headers }: FastifyRequest): string =>
  headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
