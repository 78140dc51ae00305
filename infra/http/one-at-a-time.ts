import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Sent by one client before it has read the answer to the first. */
const MAX_WAITING = 16;

interface Connection {
  isBusy: boolean;
  /** In the order in which they came. */
  waiting: [IncomingMessage, ServerResponse][];
}

/**
 * Handles the requests of a connection one after the other. Node begins all that a client sends before it has
 * read the answers (pipelining), so that one connection could make a process busy and fill its memory. Hardly
 * any client does so; one that sends too many is cut off.
 */
export function oneAtATime(handle: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Connection>();
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
  return (request, answer) => {
    const { socket } = request;
    // What came together with the one that was too many is still told of.
    if (socket.destroyed) return;
    const connection = connections.get(socket) ?? { isBusy: false, waiting: [] };
    connections.set(socket, connection);
    if (!connection.isBusy) begin(connection, request, answer);
    else if (connection.waiting.length < MAX_WAITING) connection.waiting.push([request, answer]);
    else cutOff(socket);
  };
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
