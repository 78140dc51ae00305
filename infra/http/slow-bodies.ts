import type { FastifyInstance, FastifyRequest } from "fastify";
import { ForgeError } from "../../core/errors";
import { sendError } from "./errors";
import { routeOf } from "./routing";

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
  app.addHook("onResponse", stop);
  app.addHook("onRequestAbort", stop);
}
