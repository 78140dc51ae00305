import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { createLogger } from "../logger";
import { createPool } from "./pool";
import { transaction } from "./transaction";

/** A message of Postgres's protocol: type, length, content. */
function message(type: string, content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length + 4);
  return Buffer.concat([Buffer.from(type), length, content]);
}

const AUTHENTICATED = message("R", Buffer.alloc(4));
const READY = message("Z", Buffer.from("I"));
const ENDED = message(
  "E",
  Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"),
);

let server: Server;

beforeEach(async () => {
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    // In one chunk, so that the error arrives before the client has used the connection.
    socket.once("data", () => socket.end(Buffer.concat([AUTHENTICATED, READY, ENDED])));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
});

test("a connection that ends as soon as it is ready fails only its statement", async () => {
  const { port } = server.address() as AddressInfo;
  const connectionString = `postgres://forge@127.0.0.1:${port}/forge`;
  const pool = createPool({ connectionString, max: 2, timeoutMs: 2_000 }, createLogger("silent"));
  await expect(transaction(pool, async () => undefined)).rejects.toThrow();
  await expect(pool.query("select 1")).rejects.toThrow();
  await pool.end();
});
