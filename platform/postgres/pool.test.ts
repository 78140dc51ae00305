import { type AddressInfo, createServer, type Server } from "node:net";
import type pg from "pg";
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
let firstAnswer: Buffer[];

beforeEach(async () => {
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      // Send all messages in one chunk. So if the messages include an error, the client receives
      // the error before it can send a statement.
      socket.write(Buffer.concat(firstAnswer));
      if (firstAnswer.includes(ENDED)) socket.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
});

function openPool(timeoutMs: number): pg.Pool {
  const { port } = server.address() as AddressInfo;
  const connectionString = `postgres://forge@127.0.0.1:${port}/forge`;
  return createPool({ connectionString, max: 2, timeoutMs }, createLogger("silent"));
}

test("a connection that ends as soon as it is ready fails only its statement", async () => {
  firstAnswer = [AUTHENTICATED, READY, ENDED];
  const pool = openPool(2_000);
  await expect(transaction(pool, async () => undefined)).rejects.toThrow();
  await expect(pool.query("select 1")).rejects.toThrow();
  await pool.end();
});

test("a transaction on a frozen Postgres fails after one time-out, not after two", async () => {
  firstAnswer = [AUTHENTICATED, READY];
  const pool = openPool(1_000);
  const began = performance.now();
  await expect(transaction(pool, async () => undefined)).rejects.toThrow("Query read timeout");
  expect(performance.now() - began).toBeLessThan(1_900);
  await pool.end();
});
