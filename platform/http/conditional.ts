import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";

/** Responds with 304 and no body if the client already has this response (RFC 9110, 13.1.2). */
export function sendIfChanged(
  request: FastifyRequest,
  reply: FastifyReply,
  body: unknown,
): unknown {
  const digest = createHash("sha256").update(JSON.stringify(body)).digest("base64url");
  const etag = `"${digest.slice(0, 22)}"`;
  reply.header("etag", etag).header("cache-control", "private, no-cache");
  if (!matchesEtag(request.headers["if-none-match"], etag)) return body;
  return reply.code(304).send();
}

/** Whether an If-None-Match header names this ETag. */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  const tags = (header ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
