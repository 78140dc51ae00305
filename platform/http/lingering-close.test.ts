import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { waitFor } from "../../dev/stack/wait";
import { isBodyPending, lingerOnClose } from "./lingering-close";

const PIECE = Buffer.alloc(256 * 1024);
const BOUND = 64 * 1024 * 1024;

let server: Server;

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function serve(listener: RequestListener): Promise<void> {
  server = createServer(listener);
  lingerOnClose(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
}

/** Responds at once, before the body has arrived. */
const refuse: RequestListener = (request, response) => {
  if (isBodyPending({ raw: request })) response.setHeader("connection", "close");
  response.writeHead(413, { "content-length": 2 }).end("no");
};

/** Opens a client that reads only after it has sent everything, as many clients do. */
function open(length: number): Socket {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => undefined);
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`);
  return socket;
}

/** Sends this many bytes, or until the connection ends. Returns how many were sent. */
async function send(socket: Socket, length: number): Promise<number> {
  let sent = 0;
  while (sent < length && !socket.destroyed) {
    await new Promise<void>((resolve) => {
      socket.once("close", resolve);
      socket.write(PIECE, () => {
        socket.off("close", resolve);
        resolve();
      });
    });
    sent += PIECE.length;
  }
  return sent;
}

const read = async (socket: Socket): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of socket.iterator({ destroyOnReturn: false })) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
};

test("a client that sends its whole body first can read the response", async () => {
  await serve(refuse);
  const length = 32 * PIECE.length;
  const socket = open(length);
  expect(await send(socket, length)).toBe(length);
  expect(await read(socket)).toMatch(/^HTTP\/1\.1 413 [\s\S]*\r\n\r\nno$/);
});

test("an endless body is read up to a limit", async () => {
  await serve(refuse);
  const socket = open(100 * BOUND);
  const sent = await send(socket, 100 * BOUND);
  expect(sent).toBeGreaterThan(BOUND);
  expect(sent).toBeLessThan(50 * BOUND);
});

test("the connection of a silent client that never closes is ended", async () => {
  await serve(refuse);
  const socket = open(BOUND);
  expect(await read(socket)).toMatch(/no$/);
  const countConnections = (): Promise<number> =>
    new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
  expect(await countConnections()).toBe(1);
  await waitFor("the connection to end", async () => (await countConnections()) === 0);
  socket.destroy();
});

test("the response to a complete request closes the connection at once", async () => {
  await serve((request, response) => {
    request.resume().once("end", () => response.setHeader("connection", "close").end("ok"));
  });
  const socket = open(PIECE.length);
  const started = performance.now();
  await send(socket, PIECE.length);
  expect(await read(socket)).toMatch(/ok$/);
  expect(performance.now() - started).toBeLessThan(1_500);
});
