/**
 * A hostile client sends far too many requests. The server limits how many requests it handles at
 * a time, how many it keeps in memory, how many refusals it sends per second, and how many
 * connections it closes per second.
 */

import { connect, type Socket } from "node:net";
import { ApiClient } from "../../dev/api-client";
import { residentKib } from "../../dev/stack/cpu-time";
import { waitFor } from "../../dev/stack/wait";
import { mintKey } from "../../services/accounts/key-format";
import { type Forge, startForge } from "../support/forge";
import { usesOf } from "../support/tenants";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({}, { own: ["server"] });
});

afterAll(async () => {
  await forge?.stop();
});

const request = (method: string, path: string, body = ""): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nX-Service-Api-Key: ${forge.stack.keys.userKey}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

interface Connection {
  socket: Socket;
  /** Everything received so far. */
  read(): string;
  closed: Promise<void>;
}

function open(): Connection {
  const { hostname, port } = new URL(forge.stack.apiUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return { socket, read: () => text, closed };
}

const statuses = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status = ""]) => status);

/** The number of the tenant's requests that wait on the server now, such as polls. */
const waitingRequests = async () => (await usesOf(forge)).waiting_requests;

test("pipelined requests are handled one after the other, each once", async () => {
  const { socket, read, closed } = open();
  const name = "pipelined";
  const make = request("POST", "/api/auth/api-keys", JSON.stringify({ name }));
  const list = request("GET", "/api/auth/api-keys");
  socket.write(
    list + make + list + make + list.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"),
  );
  await closed;
  expect(statuses(read())).toEqual(["200", "201", "200", "201", "200"]);
  const counts = read()
    .split("HTTP/1.1 200")
    .slice(1)
    .map((answer) => answer.match(/"name":"pipelined","scope":"user","last4"/g)?.length ?? 0);
  // Each count covers one list of keys and the creation that follows it, if any. The three lists
  // contain the name 0, 1 and 2 times, and each of the two creations returns it once. So the counts
  // are 0 + 1, 1 + 1 and 2.
  expect(counts).toEqual([1, 2, 2]);
});

test("a worker's pipelined polls wait one at a time", async () => {
  const worker = await forge.worker("pipelining");
  const poll = request("POST", "/worker/next_job", `{"worker_id":"pipelining","wait_seconds":30}`);
  const { socket, read } = open();
  socket.write(poll.repeat(5));
  const waiting = async (): Promise<boolean> => (await waitingRequests()) === 1;
  await waitFor("the first to wait", waiting);
  // A new poll of a worker ends that worker's waiting poll. If the server had begun all five polls
  // at once, each poll would have ended the previous poll, and four responses would be here by now.
  expect(await worker.next(0)).toBeUndefined();
  await waitFor("its answer", () => statuses(read()).length > 0);
  await waitFor("the second to wait", waiting);
  expect(statuses(read())).toEqual(["200"]);
  socket.destroy();
});

test("a client with far too many pipelined requests is cut off", async () => {
  const { socket, read, closed } = open();
  socket.write(request("GET", "/api/auth/ping").repeat(2_000));
  await closed;
  expect(statuses(read()).length).toBeLessThan(200);
});

test("a client that reconnects after each cut is cut some hundred times a second at most", async () => {
  const flood = request("POST", "/worker/next_job", `{"worker_id":"x","wait_seconds":30}`);
  const began = performance.now();
  let cuts = 0;
  const comesBack = async (): Promise<void> => {
    while (performance.now() - began < 3_000) {
      const { socket, closed } = open();
      socket.write(flood.repeat(20));
      await closed;
      cuts += 1;
    }
  };
  await Promise.all(Array.from({ length: 40 }, comesBack));
  const seconds = (performance.now() - began) / 1_000;
  // The server closes the first 20 connections without delay, and then 20 a second. It delays each
  // further close by at least a second. Each of the 40 loops has one connection at a time, so it
  // gets at most one delayed close a second.
  expect(cuts).toBeLessThanOrEqual(20 + 20 * seconds + 40 * Math.ceil(seconds));
  expect(cuts).toBeGreaterThanOrEqual(40);
});

test("refusals of unknown keys are limited per address; a valid key is served meanwhile", async () => {
  const guess = async (): Promise<number> =>
    await fetch(`${forge.stack.apiUrl}/api/jobs`, {
      headers: { "x-service-api-key": mintKey("user") },
    }).then(
      ({ status }) => status,
      () => 0,
    );
  const began = performance.now();
  const guesses = Promise.all(Array.from({ length: 1_000 }, guess));
  expect((await forge.user.call("GET", "/api/auth/ping")).status).toBe(200);
  const answers = await guesses;
  const seconds = (performance.now() - began) / 1_000;
  const refusals = answers.filter((status) => status === 403).length;
  expect(refusals + answers.filter((status) => status === 0).length).toBe(1_000);
  // The server sends the first 20 refusals without delay, and then 20 a second. It delays further
  // refusals by at least 1 s, and at most 100 of them wait at a time. So it sends at most 100
  // delayed refusals a second. The limit allows for one more second.
  expect(refusals).toBeLessThanOrEqual(20 + 20 * seconds + 100 * Math.ceil(seconds + 1));
  expect(refusals).toBeGreaterThanOrEqual(100);
});

test("a body with an excessive number of values is refused before it is parsed", async () => {
  const user = new ApiClient(forge.stack.apiUrl, forge.stack.keys.userKey);
  const dataset_uri = "s3://bucket/data.parquet";
  const of = (params: unknown) => user.call("POST", "/api/jobs/audit", { dataset_uri, params });
  const { status, body } = await of({ list: Array(150_000).fill(1) });
  expect(status).toBe(400);
  expect(body).toMatchObject({
    error: { code: "invalid_request", message: expect.stringContaining("150000 values") },
  });
  // The server counts values by the commas between them. Commas inside a string must not count.
  const answer = await of({ text: ",".repeat(200_000) });
  expect(answer.body).not.toMatchObject({
    error: { message: expect.stringContaining("150000 values") },
  });
});

describe("no parsed body is kept in memory", () => {
  const VALUES = Array(70_000).fill("[0]").join(",");
  const rssMb = (): number => residentKib(forge.own("server").pid) / 1_024;

  /** Sends many requests and keeps their connections open. @returns the memory's growth in MB. */
  async function growth(
    requestOf: (n: number) => string,
    areDone: (connections: Connection[]) => Promise<boolean>,
  ): Promise<number> {
    const connections: Connection[] = [];
    const send = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++) {
        const connection = open();
        connection.socket.write(requestOf(connections.length));
        connections.push(connection);
      }
      await waitFor("all to be read", () => areDone(connections), { timeoutMs: 60_000 });
    };
    await send(20);
    const before = rssMb();
    // Send two batches, because the server accepts at most 100 large bodies of a tenant at a time.
    for (const count of [60, 60]) await send(count);
    const after = rssMb();
    for (const { socket } of connections) socket.destroy();
    return after - before;
  }

  // Each parsed body takes 4 MB, so the bodies of all 120 requests would take 480 MB.
  const MOST_MB = 200;

  test("by an idle connection", async () => {
    const body = `{"worker_id":"x","p":[${VALUES}]}`;
    const handled = request("POST", "/worker/heartbeat", body);
    const refusedBefore = request("POST", "/api/jobs/audit?unknown=1", body);
    const isAnswered = ({ read }: Connection): boolean => statuses(read()).length === 1;
    const grown = await growth(
      (n) => (n % 2 ? handled : refusedBefore),
      async (connections) => connections.every(isAnswered),
    );
    expect(grown).toBeLessThan(MOST_MB);
  }, 150_000);

  test("by a waiting poll", async () => {
    const ids = Array.from({ length: 140 }, (_, n) => `large-${n}`);
    for (const id of ids) await forge.worker(id);
    const poll = (n: number): string =>
      request(
        "POST",
        "/worker/next_job",
        `{"worker_id":"${ids[n]}","wait_seconds":50,"p":[${VALUES}]}`,
      );
    // A job that an earlier test left may end one of the polls.
    const wait = async (connections: Connection[]): Promise<boolean> => {
      const answered = connections.filter(({ read }) => read() !== "").length;
      return ((await waitingRequests()) ?? 0) + answered >= connections.length;
    };
    const grown = await growth(poll, wait);
    expect(grown).toBeLessThan(MOST_MB);
  }, 150_000);
});
