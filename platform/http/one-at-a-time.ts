import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Throttle } from "../concurrency/throttle";
import { addressGroup } from "../net/address-group";

/** Maximum number of waiting requests of one connection. */
const MAX_WAITING = 4;
/** Limits, per address, how fast connections that sent too many requests are closed. */
const CLOSE_RATE = { perSecond: 20, burst: 20, maxWaitMs: 2_000, maxWaiting: 100 };
/**
 * Maximum number of connections, of all addresses together, that wait to be closed at CLOSE_RATE.
 * Further connections are closed at once.
 */
const MAX_HELD = 1_000;

interface Connection {
  isBusy: boolean;
  /** The client sent too many requests: no further request of this connection begins. */
  isClosing: boolean;
  /** In order of arrival. */
  waiting: [IncomingMessage, ServerResponse][];
}

/**
 * Handles the requests of a connection one after the other. By default Node begins all pipelined
 * requests at once: one connection could make the process busy and fill its memory. A connection
 * with too many waiting requests is closed. This affects few clients, because pipelining is rare.
 * Such connections are closed at a limited rate, because their clients usually reconnect.
 */
export function oneAtATime(handle: RequestListener, nowMs: () => number): RequestListener {
  const connections = new WeakMap<Socket, Connection>();
  const throttle = new Throttle(CLOSE_RATE, nowMs);
  let held = 0;
  const begin = (
    connection: Connection,
    request: IncomingMessage,
    answer: ServerResponse,
  ): void => {
    connection.isBusy = true;
    answer.once("close", () => {
      connection.isBusy = false;
      const next = connection.waiting.shift();
      if (next && !request.socket.destroyed) begin(connection, ...next);
    });
    handle(request, answer);
  };
  const closeExcess = async (socket: Socket): Promise<void> => {
    stopReading(socket);
    held += 1;
    if (held <= MAX_HELD) await throttle.wait(addressGroup(socket.remoteAddress ?? ""));
    held -= 1;
    closeNow(socket);
  };
  return (request, answer) => {
    const { socket } = request;
    const connection = connections.get(socket) ?? { isBusy: false, isClosing: false, waiting: [] };
    connections.set(socket, connection);
    if (socket.destroyed || connection.isClosing) return;
    if (!connection.isBusy) begin(connection, request, answer);
    else if (connection.waiting.length < MAX_WAITING) connection.waiting.push([request, answer]);
    else {
      connection.isClosing = true;
      connection.waiting = [];
      void closeExcess(socket);
    }
  };
}

/** Stops reading from the socket, and drops the requests of the chunk that Node is parsing. */
function stopReading(socket: Socket & { parser?: { onIncoming?: unknown } }): void {
  // A chunk may have about 2,000 requests. Node parses all of them, and has no public way to stop.
  if (socket.parser) socket.parser.onIncoming = drop;
  // The client may reset the connection before the server closes it.
  socket.on("error", () => undefined);
  // Node resumes the socket after each request, so pause it again.
  socket.on("resume", () => socket.pause());
  socket.pause();
}

/**
 * Ignores a request. Also clears `upgrade`. Otherwise Node would treat the socket as upgraded and
 * remove its own listeners from it, for example the one for errors.
 */
function drop(request: IncomingMessage & { upgrade?: boolean }): number {
  request.upgrade = false;
  return 0;
}

/**
 * Closes a connection. Node then creates an error for each open request. Stack traces would make
 * these errors expensive, so they are turned off during the close.
 */
function closeNow(socket: Socket): void {
  const { stackTraceLimit } = Error;
  socket.prependOnceListener("close", () => {
    Error.stackTraceLimit = 0;
  });
  socket.once("close", () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  socket.destroy();
}
