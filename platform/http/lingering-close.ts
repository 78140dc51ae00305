import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

/** Limits for reading the rest of a body after the response: bytes, idle time, total time. */
const MAX_BYTES = 64 * 1024 * 1024;
const QUIET_MS = 2_000;
const MAX_MS = 30_000;
const CHECK_MS = 50;

/** True while bytes of the request's body may still arrive. */
export function isBodyPending({ raw }: { raw: IncomingMessage }): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = raw.headers;
  const hasBody = encoding !== undefined || (length !== undefined && length !== "0");
  return hasBody && !raw.complete;
}

/**
 * Makes a server continue to read for a while before it closes a connection, like nginx's
 * `lingering_close`. By default Node destroys the socket when the response is written. If the
 * client is still sending, the kernel then resets the connection, and the client gets a broken pipe
 * instead of the response.
 */
export function lingerOnClose(server: Server): void {
  const latest = new WeakMap<Socket, IncomingMessage>();
  server.on("request", (raw: IncomingMessage) => latest.set(raw.socket, raw));
  server.on("connection", (socket: Socket) => {
    const destroySoon = socket.destroySoon.bind(socket);
    socket.destroySoon = () => {
      const raw = latest.get(socket);
      if (!raw || !isBodyPending({ raw })) return destroySoon();
      socket.end();
      dropRest(raw);
    };
  });
}

/** Ends our side of a connection without a valid request, and drops the bytes that still arrive. */
export function closeLingering(socket: Socket): void {
  socket.end();
  readOn(socket, { isDone: () => false, onEnd: () => socket.destroy() });
}

/**
 * Reads and drops the rest of a body after the response, so that a kept-alive connection can serve
 * the next request. If a limit is reached or the client closes the connection before the body is
 * complete, destroys the body stream with an error. This ends a handler that still reads the body:
 * after the response, Node itself does not destroy the stream.
 */
export function dropRest(raw: IncomingMessage): void {
  raw.resume();
  readOn(raw.socket, {
    isDone: () => raw.complete && !raw.socket.writableEnded,
    onEnd: () => {
      if (raw.complete) raw.socket.destroy();
      else raw.destroy(new Error("the response was sent before the whole body arrived"));
    },
  });
}

interface Reading {
  isDone(): boolean;
  /** Called at a limit, and when the client has closed the connection. */
  onEnd(): void;
}

function readOn(socket: Socket, { isDone, onEnd }: Reading): void {
  const started = { bytes: socket.bytesRead, ms: performance.now() };
  let last = started;
  const check = setInterval(() => {
    const now = { bytes: socket.bytesRead, ms: performance.now() };
    if (now.bytes > last.bytes) last = now;
    const isOver =
      now.bytes - started.bytes > MAX_BYTES ||
      now.ms - last.ms > QUIET_MS ||
      now.ms - started.ms > MAX_MS;
    if (isOver) onEnd();
    if (isOver || isDone()) stop();
  }, CHECK_MS).unref();
  const stop = (): void => {
    clearInterval(check);
    socket.off("close", onClose);
  };
  const onClose = (): void => {
    stop();
    onEnd();
  };
  socket.once("close", onClose);
}
