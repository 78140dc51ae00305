import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Throttle } from "../concurrency/throttle";
import { addressGroup } from "../net/address-group";

/** Most requests that may wait on one connection. */
const MAX_WAITING = 4;
/** The rate per address at which connections with too many requests are closed. */
const CUTS = { perSecond: 20, burst: 20, maxWaitMs: 2_000, maxWaiting: 100 };
/**
 * Most connections, of all addresses together, that wait to be closed at the rate of CUTS. Further
 * ones are closed at once.
 */
const MAX_HELD = 1_000;

interface Connection {
  isBusy: boolean;
  /** The client sent too many requests: no further request of this connection begins. */
  isCut: boolean;
  /** In order of arrival. */
  waiting: [IncomingMessage, ServerResponse][];
}

/**
 * Handles the requests of a connection one after the other. Node begins all pipelined requests at
 * once, so that one connection could make a process busy and fill its memory. Few clients use
 * pipelining. A connection with too many waiting requests is closed. Such connections are closed at
 * a limited rate, because their clients usually reconnect.
 */
export function oneAtATime(handle: RequestListener, nowMs: () => number): RequestListener {
  const connections = new WeakMap<Socket, Connection>();
  const throttle = new Throttle(CUTS, nowMs);
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
  const cut = async (socket: Socket): Promise<void> => {
    stopReading(socket);
    held += 1;
    if (held <= MAX_HELD) await throttle.wait(addressGroup(socket.remoteAddress ?? ""));
    held -= 1;
    cutOff(socket);
  };
  return (request, answer) => {
    const { socket } = request;
    const connection = connections.get(socket) ?? { isBusy: false, isCut: false, waiting: [] };
    connections.set(socket, connection);
    if (socket.destroyed || connection.isCut) return;
    if (!connection.isBusy) begin(connection, request, answer);
    else if (connection.waiting.length < MAX_WAITING) connection.waiting.push([request, answer]);
    else {
      connection.isCut = true;
      connection.waiting = [];
      void cut(socket);
    }
  };
}

/** Stops reading from the socket, and drops the requests of the chunk that Node is parsing. */
function stopReading(socket: Socket & { parser?: { onIncoming?: unknown } }): void {
  // A chunk may have about 2,000 requests. Node parses all of them, and has no public way to stop.
  if (socket.parser) socket.parser.onIncoming = drop;
  // The client may reset the connection while it is held.
  socket.on("error", () => undefined);
  // Node resumes the socket after each request, so pause it again.
  socket.on("resume", () => socket.pause());
  socket.pause();
}

/**
 * Ignores a request. Also clears `upgrade`: for an upgrade, Node would remove its error listener
 * from the socket.
 */
function drop(request: IncomingMessage & { upgrade?: boolean }): number {
  request.upgrade = false;
  return 0;
}

/**
 * Closes a connection. Node then creates an error for each open request. Turns stack traces off
 * meanwhile, because they make errors expensive.
 */
function cutOff(socket: Socket): void {
  const { stackTraceLimit } = Error;
  socket.prependOnceListener("close", () => {
    Error.stackTraceLimit = 0;
  });
  socket.once("close", () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  socket.destroy();
}
