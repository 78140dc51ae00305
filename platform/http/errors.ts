import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { ZodError } from "zod";
import { ForgeError, InvalidRequest, Unavailable } from "../../core/errors";
import { newId } from "../ids";
import { isBadValue, isLockTimeout, isUnavailable } from "../postgres/errors";
import { isStoreUnavailable } from "../store/object-store";
import { closeLingering, isBodyPending } from "./lingering-close";
import { fromZod } from "./validation";

const RETRY_AFTER_S = 2;
const MAX_MESSAGE = 1_000;
const MAX_PARAM = 256;

/** The content type of errors as in RFC 9457, for clients that accept it. */
const PROBLEM = "application/problem+json";

/**
 * Turns an error into a response, and returns the error code. Handlers throw errors and leave the
 * response to this function.
 */
export function sendError(
  error: FastifyError | Error,
  request: FastifyRequest,
  reply: FastifyReply,
): string {
  const refusal = toForgeError(error);
  if (refusal.status >= 500) {
    const level = refusal.status > 500 ? "warn" : "error";
    request.log[level]({ err: error, code: refusal.code }, "request failed");
  }
  reply.header("x-request-id", request.id);
  const isTransient = refusal.status === 503 || refusal.status === 429;
  if (isTransient && !reply.hasHeader("retry-after")) reply.header("retry-after", RETRY_AFTER_S);
  // If the client is still sending the body, tell it that the connection will be closed.
  // lingering-close.ts drops the bytes that still arrive.
  if (isBodyPending(request)) reply.header("connection", "close");
  reply.code(refusal.status);
  if (wantsProblem(request)) reply.type(PROBLEM).send(asProblem(refusal, request.id));
  else reply.type("application/json").send(asError(refusal, request.id));
  return refusal.code;
}

/** Responds to bytes that are not an HTTP request, or to a request that did not arrive in time. */
export function sendConnectionError(error: Error & { code?: string }, socket: Socket): void {
  // Respond only once: after a chunk that is not HTTP, Node reports an error for each further chunk
  // of the connection.
  if (socket.writableEnded) return;
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const refusal = fromParser(error.code);
  const requestId = newId("req");
  const body = JSON.stringify(asError(refusal, requestId));
  socket.write(
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\nContent-Type: application/json\r\n` +
      `X-Request-Id: ${requestId}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  closeLingering(socket);
}

function asError(refusal: ForgeError, requestId: string) {
  return {
    error: {
      code: refusal.code,
      message: shortened(refusal.message, MAX_MESSAGE),
      ...(refusal.param === undefined ? {} : { param: shortened(refusal.param, MAX_PARAM) }),
      request_id: requestId,
      ...(refusal.details === undefined ? {} : { details: refusal.details }),
    },
  };
}

/** Errors quote the client's input, so limit their length. */
const shortened = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;

function asProblem(refusal: ForgeError, requestId: string) {
  const { message, ...members } = asError(refusal, requestId).error;
  return {
    type: `urn:forge:error:${refusal.code}`,
    title: refusal.code.replaceAll("_", " "),
    status: refusal.status,
    detail: message,
    ...members,
  };
}

function wantsProblem(request: FastifyRequest): boolean {
  const ranges = (request.headers.accept ?? "").split(",");
  const accepted = ranges.find((range) => range.trim().toLowerCase().startsWith(PROBLEM));
  return accepted !== undefined && !/;\s*q=0(\.0*)?\s*(;|$)/.test(accepted);
}

function toForgeError(error: FastifyError | Error): ForgeError {
  if (error instanceof ForgeError) return error;
  if (error instanceof ZodError) return fromZod(error);
  if (isUnavailable(error))
    return new Unavailable("the database is unavailable; try again shortly");
  if (isLockTimeout(error))
    return new Unavailable("another request holds a lock; try again shortly");
  if (isStoreUnavailable(error))
    return new Unavailable("the artifact store is unavailable; try again shortly");
  if (isBadValue(error)) return new InvalidRequest("a text, time or number is out of range");
  return fromFastify(error) ?? new ForgeError(500, "internal_error", "an internal error occurred");
}

function fromFastify(error: FastifyError | Error): ForgeError | undefined {
  const status = "statusCode" in error ? (error.statusCode ?? 0) : 0;
  const known = FASTIFY_ERRORS[status];
  return known && new ForgeError(status, ...known);
}

/** Codes and messages for errors of Fastify, by status. */
const FASTIFY_ERRORS: Record<number, [code: string, message: string]> = {
  400: ["malformed_request", "the request is incomplete or malformed"],
  413: ["body_too_large", "the request body is too large"],
  415: ["unsupported_media_type", "this route does not accept the Content-Type"],
  503: ["unavailable", "the server is stopping; try again shortly"],
};

function fromParser(code: string | undefined): ForgeError {
  if (code === "HPE_HEADER_OVERFLOW") {
    return new ForgeError(431, "headers_too_large", "the request's headers are too large");
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new ForgeError(408, "request_timeout", "the request did not arrive in time");
  }
  return new ForgeError(400, "malformed_request", "this is not an HTTP request");
}
