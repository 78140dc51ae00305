import type { FastifyInstance, FastifyRequest } from "fastify";
import { ForgeError } from "../../core/errors";
import { sendError } from "./errors";
import { routeOf } from "./routing";

/** For so long the rest of a body is read that nobody wants, so that the answer reaches its client. */
const REST_MS = 500;

/** Refuses a body that doesn't arrive in time. A streamed one must only never stand still for so long. */
export function limitSlowBodies(app: FastifyInstance, timeoutS: number): void {
  const timers = new WeakMap<FastifyRequest, NodeJS.Timeout>();
  app.addHook("preParsing", async (request, reply) => {
    const { raw } = request;
    let read = raw.socket.bytesRead;
    const isStreamed = routeOf(request)?.stream !== undefined;
    const timer = setInterval(() => {
      if (raw.complete || reply.sent) return;
      const moved = raw.socket.bytesRead > read;
      read = raw.socket.bytesRead;
      if (isStreamed && moved) return;
      const message = `the request's body did not arrive within ${timeoutS} s`;
      sendError(new ForgeError(408, "request_timeout", message), request, reply);
    }, timeoutS * 1000);
    timers.set(request, timer);
  });
  const stop = async (request: FastifyRequest): Promise<void> => {
    clearInterval(timers.get(request));
  };
  app.addHook("preValidation", async (request) => {
    if (routeOf(request)?.stream === undefined) await stop(request);
  });
  app.addHook("onResponse", async (request) => {
    await stop(request);
    dropRest(request);
  });
  app.addHook("onRequestAbort", stop);
}

/**
 * Ends a request that was answered before its body was there: whoever sends on, or never, is hung up on,
 * and whoever still reads the body hears of it.
 */
function dropRest({ raw }: FastifyRequest): void {
  if (raw.complete) return;
  setTimeout(() => {
    if (!raw.complete) raw.destroy(new Error("the request was answered before its body came"));
  }, REST_MS).unref();
}
