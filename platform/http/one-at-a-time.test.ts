import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { oneAtATime } from "./one-at-a-time";

let server: Server;
/** For the path of each open request: a function that ends the response. */
let open: Map<string, () => void>;

beforeEach(async () => {
  open = new Map();
  server = createServer(
    oneAtATime((request, answer) => {
      open.set(request.url ?? "", () => answer.end(request.url));
    }, performance.now.bind(performance)),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const client = () => connect((server.address() as AddressInfo).port, "127.0.0.1");
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

test("a request begins when the previous one is answered; other connections don't wait", async () => {
  const [one, other] = [client(), client()];
  one.write(get("/1") + get("/2"));
  other.write(get("/3"));
  await until(() => open.has("/1") && open.has("/3"));
  expect([...open.keys()].sort()).toEqual(["/1", "/3"]);
  open.get("/1")?.();
  await until(() => open.has("/2"));
});

test("waiting requests of a closed connection do not begin", async () => {
  const one = client();
  one.write(get("/1") + get("/2"));
  await until(() => open.has("/1"));
  one.destroy();
  const other = client();
  other.write(get("/3"));
  await until(() => open.has("/3"));
  open.get("/1")?.();
  open.get("/3")?.();
  await new Promise((resolve) => other.once("data", resolve));
  expect([...open.keys()]).toEqual(["/1", "/3"]);
});

test("a connection with too many waiting requests is closed, and errors keep their stacks", async () => {
  const one = client();
  const closed = new Promise((resolve) => one.once("close", resolve));
  one.on("error", () => undefined);
  one.write(Array.from({ length: 100 }, (_, n) => get(`/${n}`)).join(""));
  await closed;
  await until(() => open.has("/0"));
  expect([...open.keys()]).toEqual(["/0"]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(new Error("x").stack).toMatch(/\n\s+at /);
});

test("connections are closed at a limited rate, and are not read until then", async () => {
  const sockets: Socket[] = [];
  server.on("connection", (socket) => sockets.push(socket));
  let requests = 0;
  server.on("request", () => {
    requests += 1;
  });
  const flood = Array.from({ length: 40_000 }, () => get("/")).join("");
  const heldMs = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const one = client().on("error", () => undefined);
      const began = performance.now();
      one.resume().write(flood);
      await new Promise((resolve) => one.once("close", resolve));
      return performance.now() - began;
    }),
  );
  // The first connections close at once, the next ones at 20 a second, and all within two seconds.
  expect(heldMs.filter((ms) => ms > 900).length).toBeGreaterThanOrEqual(15);
  // The server reads one chunk from each connection. It then emits `request` 6 times: for a request
  // that begins, for 4 requests that wait, and for one that exceeds the limit.
  expect(Math.max(...sockets.map(({ bytesRead }) => bytesRead))).toBeLessThanOrEqual(65_536);
  expect(requests).toBe(60 * 6);
});

test("an upgrade request after too many requests, with a reset before the close, does no harm", async () => {
  const upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  // The first connections use up CLOSE_RATE. The server closes the other connections later, after
  // their clients have reset them.
  const clients = Array.from({ length: 60 }, (_, n) => {
    const one = client().on("error", () => undefined);
    one.write(get(`/${n}`) + get("/").repeat(17) + upgrade);
    return one;
  });
  await until(() => open.size === clients.length);
  for (const one of clients) one.resetAndDestroy();
  for (const answer of open.values()) answer();
  const other = client();
  other.write(get("/after"));
  await until(() => open.has("/after"));
  open.get("/after")?.();
  const [answer] = await once(other, "data");
  expect(String(answer)).toContain("/after");
});
