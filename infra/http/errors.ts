import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { ZodError } from "zod";
import { ForgeError, InvalidRequest, Unavailable } from "../../core/errors";
import { isAway, isBadText } from "../database/errors";
import { fromZod } from "./validation";

const RETRY_AFTER_S = 2;

/** The one place where a failure becomes an answer. */
export function sendError(
  error: FastifyError | Error,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const refusal = toForgeError(error);
  if (refusal.status >= 500) {
    const level = refusal.status === 503 ? "warn" : "error";
    request.log[level]({ err: error, code: refusal.code }, "request failed");
  }
  if (refusal.status === 503) reply.header("retry-after", RETRY_AFTER_S);
  if (refusal.status === 413) reply.header("connection", "close");
  reply.code(refusal.status).send({
    error: {
      code: refusal.code,
      message: refusal.message,
      ...(refusal.param === undefined ? {} : { param: refusal.param }),
      request_id: request.id,
      ...(refusal.details === undefined ? {} : { details: refusal.details }),
    },
  });
}

function toForgeError(error: FastifyError | Error): ForgeError {
  if (error instanceof ForgeError) return error;
  if (error instanceof ZodError) return fromZod(error);
  if (isAway(error)) return new Unavailable("the database is away; try again shortly");
  if (isBadText(error)) return new InvalidRequest("text may not contain NUL or broken Unicode");
  return (
    fromFastify(error) ?? new ForgeError(500, "internal_error", "something failed on our side")
  );
}

function fromFastify(error: FastifyError | Error): ForgeError | undefined {
  if (!("statusCode" in error) || error.statusCode === undefined || error.statusCode >= 500) {
    return undefined;
  }
  switch (error.statusCode) {
    case 413:
      return new ForgeError(413, "body_too_large", "the request body is too large");
    case 415:
      return new ForgeError(
        415,
        "unsupported_media_type",
        "send JSON: Content-Type: application/json",
      );
    default:
      return new ForgeError(400, "malformed_json", "the body is not valid JSON");
  }
}
