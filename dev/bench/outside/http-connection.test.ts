import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { bodyOf, encode, HttpConnection, withNewKey } from "./http-connection";

let server: Server;
let connection: HttpConnection;

beforeAll(async () => {
  server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      const { method, url, headers } = request;
      const body = JSON.stringify({ method, url, key: headers["x-service-api-key"], text, é: "ü" });
      response.writeHead(url === "/refused" ? 409 : 200, {
        "content-length": Buffer.byteLength(body),
      });
      // Sends the body in two chunks. The first one ends in the middle of a character.
      response.write(Buffer.from(body).subarray(0, -3));
      setTimeout(() => response.end(Buffer.from(body).subarray(-3)), 5);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  connection = await HttpConnection.open(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  );
});

afterAll(async () => {
  connection.close();
  await new Promise((resolve) => server.close(resolve));
});

test("sends requests and reads answers one after the other on one connection", async () => {
  for (const body of [undefined, { é: 1 }]) {
    const call = { method: "POST", path: "/a", body } as const;
    expect(bodyOf(await connection.send(encode(call, "key")))).toEqual({
      method: "POST",
      url: "/a",
      key: "key",
      text: body === undefined ? "" : '{"é":1}',
      é: "ü",
    });
  }
});

test("throws for a status other than 2xx, and for a second request before the first is answered", async () => {
  const request = encode({ method: "GET", path: "/refused" }, "key");
  const first = connection.send(request);
  await expect(connection.send(request)).rejects.toThrow("a request is waiting");
  const answer = await first;
  expect(() => bodyOf(answer)).toThrow(/HTTP 409 .*refused/);
});

test("refuses a request on a closed connection", async () => {
  connection.close();
  const request = encode({ method: "GET", path: "/a" }, "key");
  await expect(connection.send(request)).rejects.toThrow("the connection is closed");
});

test("each request of an idempotent call has a key of its own", () => {
  const keyOf = (request: Buffer): string | undefined =>
    /\r\nidempotency-key: ([0-9a-f-]{36})\r\n/.exec(request.toString())?.[1];
  const request = encode({ method: "POST", path: "/a", body: {}, isIdempotent: true }, "key");
  const keys = [1, 2].map(() => keyOf(withNewKey(request)));
  expect(new Set(keys).size).toBe(2);
  expect(keys).not.toContain(keyOf(request));
  const other = encode({ method: "POST", path: "/a", body: {} }, "key");
  expect(keyOf(other)).toBeUndefined();
  expect(() => withNewKey(other)).toThrow("no Idempotency-Key");
});
