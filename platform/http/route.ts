import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Principal, Scope } from "../../core/accounts/principal";
import type { Pace } from "../concurrency/pace";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What a handler is called with: every part parsed by the route's own schemas. */
interface Call<Q, B> {
  principal: Principal;
  /** Of the path, as text. */
  params: Record<string, string>;
  query: Q;
  body: B;
  /** Those that the route declares, by the names that it gives them. */
  headers: Record<string, string | undefined>;
  request: FastifyRequest;
  reply: FastifyReply;
}

/** One of the answers that a route gives when all goes well. */
export interface Answer {
  description: string;
  /** The body's schema, where that is JSON. */
  schema?: z.ZodType;
  /** Else what it may be: by content type, the schema. */
  content?: Record<string, z.ZodType>;
  headers?: Record<string, string>;
}

/** A JSON body. */
interface JsonBody<B> {
  /** What the document shows; it also parses, unless `parse` does. */
  schema: z.ZodType<B>;
  parse?: (body: unknown) => B;
  /** Bodies that work, by name: shown in the document, and sent by a test. */
  examples: Record<string, unknown>;
  /** True: the request may come without one. */
  optional?: boolean;
}

/** A body that is streamed, of one of these content types. */
interface StreamedBody {
  contentTypes: readonly string[];
  /** Of any other content type too, or none; it may be absent. */
  isAnything?: true;
  description: string;
}

interface RouteSpec<Q, B> {
  method: Method;
  /** One canonical path first, then its aliases; each is served with and without /api. */
  paths: [canonical: string, ...aliases: string[]];
  /** The least scope that may call it; "open" needs no key. A route without one does not compile. */
  scope: Scope | "open";
  /** Not counted by the rate limit: workers ask as often as they must. */
  unlimited?: true;
  /** Nobody waits for its answer: its key is looked up together with those of other such requests. */
  patient?: true;
  /** Of a worker: while the process is busy, it waits for its tenant's share, as requests of users do. */
  yields?: true;
  /** At which a tenant's requests go on; before their bodies are read. */
  pace?: Pace;
  /** Its handler waits for more than the database, and takes turns at that by itself. */
  waits?: true;
  /** The operation's name in the document, and in SDKs made from it. */
  operationId: string;
  /** The group it is shown in. */
  tag: string;
  summary: string;
  description?: string;
  /** Not in the document: it only refuses, by the name of what is wrong. */
  undocumented?: true;
  query?: z.ZodType<Q>;
  body?: JsonBody<B>;
  stream?: StreamedBody;
  /** Request headers that mean something here, with what they do. */
  headers?: Record<string, z.ZodType>;
  /** By status; the first is what a handler answers that sets none. */
  answers: Record<number, Answer>;
  /** Refusals beyond those that any route may give: status → codes. */
  refusals?: Record<number, string[]>;
  handle(call: Call<Q, B>): Promise<unknown>;
}

export interface Route extends Omit<RouteSpec<unknown, unknown>, "handle"> {
  handle(call: Call<unknown, unknown>): Promise<unknown>;
}

/** As much of a call as helpers need, whatever its route. */
export type AnyCall = Pick<Call<unknown, unknown>, "request" | "reply" | "principal">;

type None = Record<string, never>;

/** Declares a route; what its handler receives has the types of its schemas. */
export function route<Q = None, B = undefined>(spec: RouteSpec<Q, B>): Route {
  return spec as unknown as Route;
}

/** The request's content type, without its parameters. */
export const mediaTypeOf = ({ headers }: FastifyRequest): string =>
  headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
