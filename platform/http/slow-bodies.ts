import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ForgeError } from "../../core/errors";
import { sendError } from "./errors";
import { dropRest, isBodyPending } from "./lingering-close";
import { routeOf } from "./routing";

const SWEEP_MS = 250;

interface AwaitedBody {
  request: FastifyRequest;
  reply: FastifyReply;
  bytesRead: number;
  /** When the wait for the body began; for a streamed body, when bytes last arrived. */
  sinceMs: number;
}

/**
 * Refuses a body that doesn't arrive within the time-out. For a streamed body, the time-out starts
 * again when bytes arrive.
 */
export function limitSlowBodies(app: FastifyInstance, timeoutS: number): void {
  const awaited = new Map<FastifyRequest, AwaitedBody>();
  const refuse = ({ request, reply }: AwaitedBody): void => {
    awaited.delete(request);
    if (request.raw.complete || reply.sent) return;
    const message = `the request's body did not arrive within ${timeoutS} s`;
    sendError(new ForgeError(408, "request_timeout", message), request, reply);
  };
  // Check all bodies at an interval: this is cheaper than a timer for each request.
  const sweep = setInterval(() => {
    const nowMs = performance.now();
    for (const body of awaited.values()) {
      const { bytesRead } = body.request.raw.socket;
      if (isStreamed(body.request) && bytesRead > body.bytesRead) {
        body.bytesRead = bytesRead;
        body.sinceMs = nowMs;
      } else if (nowMs - body.sinceMs > timeoutS * 1000) {
        refuse(body);
      }
    }
  }, SWEEP_MS).unref();
  app.addHook("onClose", async () => clearInterval(sweep));
  app.addHook("preParsing", (request, reply, _payload, done) => {
    const { bytesRead } = request.raw.socket;
    awaited.set(request, { request, reply, bytesRead, sinceMs: performance.now() });
    done();
  });
  app.addHook("preValidation", (request, _reply, done) => {
    if (!isStreamed(request)) awaited.delete(request);
    done();
  });
  app.addHook("onResponse", (request, _reply, done) => {
    awaited.delete(request);
    if (isBodyPending(request) && !request.raw.socket.writableEnded) dropRest(request.raw);
    done();
  });
  app.addHook("onRequestAbort", (request, done) => {
    awaited.delete(request);
    done();
  });
}

const isStreamed = (request: FastifyRequest): boolean => routeOf(request)?.stream !== undefined;
