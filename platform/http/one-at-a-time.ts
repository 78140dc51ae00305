import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Pace } from "../concurrency/pace";
import { addressGroup } from "../net/address-group";

/** Sent by one client before it has read the answer to the first. */
const MAX_WAITING = 16;
/** How fast connections are cut; at most 100 of an address wait for it. */
const CUTS = { perSecond: 20, burst: 20, maxWaitMs: 1_000, maxWaiting: 100 };
/** Connections of all addresses that are held. */
const MAX_HELD = 1_000;

interface Connection {
  isBusy: boolean;
  /** It sent too many: none of its requests begins any more. */
  isCut: boolean;
  /** In the order in which they came. */
  waiting: [IncomingMessage, ServerResponse][];
}

/**
 * Handles the requests of a connection one after the other. Node begins all that a client sends before it has
 * read the answers (pipelining), so that one connection could make a process busy and fill its memory. Hardly
 * any client does so; one that sends too many is cut off, and at a rate: its client would only come back.
 */
export function oneAtATime(handle: RequestListener, nowMs: () => number): RequestListener {
  const connections = new WeakMap<Socket, Connection>();
  const pace = new Pace(CUTS, nowMs);
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
    if (held <= MAX_HELD) await pace.wait(addressGroup(socket.remoteAddress ?? ""));
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

/** Stops reading, and drops requests that are already parsed. */
function stopReading(socket: Socket & { parser?: { onIncoming?: unknown } }): void {
  // Node goes through all that came in one piece, some 2,000 requests, and has no public way to stop it.
  if (socket.parser) socket.parser.onIncoming = drop;
  // Its client may go while it is held.
  socket.on("error", () => undefined);
  // Node resumes it after each request.
  socket.on("resume", () => socket.pause());
  socket.pause();
}

/** As Node's own where nobody takes upgrades: else it would leave the socket to one who does, without a listener for errors. */
function drop(request: IncomingMessage & { upgrade?: boolean }): number {
  request.upgrade = false;
  return 0;
}

/** Node makes an error for each request that had no answer yet: hundreds, of which nobody looks at the stack. */
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
