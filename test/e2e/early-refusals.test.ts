/**
 * Requests that are refused before their body has arrived. The client sends the whole body before
 * it reads, and must get the response, not a broken pipe.
 */

import { connect, type Socket } from "node:net";
import { deploy, servingWorker } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import type { ServingWorker } from "../support/serving-worker";

let forge: Forge;
let worker: ServingWorker;

const MEBIBYTE = 1024 * 1024;
const SIZE = 16 * MEBIBYTE;
const BURST = 200;

beforeAll(async () => {
  forge = await startForge({
    FORGE_PROXY_MAX_BODY_BYTES: String(SIZE / 2),
    FORGE_MAX_LOG_BYTES: String(MEBIBYTE),
    // The rate limiter adds only one token a minute, so it adds none between a test's last ping and
    // its upload.
    FORGE_RATE_LIMIT_PER_MINUTE: "1",
    FORGE_RATE_LIMIT_BURST: String(BURST),
  });
  worker = await servingWorker(forge, "box");
});

afterAll(async () => {
  await worker?.die();
  await forge?.stop();
});

interface Sent {
  method: string;
  path: string;
  headers: Record<string, string>;
  /** The start of the body; zeros follow. */
  begin?: string;
  chunked?: boolean;
  size?: number;
}

/** The response's status and error code, after the whole body was sent. */
async function refusalOf(request: Sent): Promise<string> {
  const { status, body } = await answerTo(request);
  return `${status} ${(JSON.parse(body) as { error: { code: string } }).error.code}`;
}

async function answerTo(request: Sent): Promise<{ status: string; body: string }> {
  const { method, path, headers, begin = "", chunked = false, size = SIZE } = request;
  const { hostname, port } = new URL(forge.stack.apiUrl);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const broken = new Promise<never>((_resolve, reject) => socket.once("error", reject));
  const length = chunked ? "Transfer-Encoding: chunked" : `Content-Length: ${size}`;
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\n${length}\r\n${head.join("")}\r\n`);
  try {
    await Promise.race([sendAll(socket, { begin, chunked, size }), broken]);
    const answer = await Promise.race([readAll(socket), broken]);
    const [, status = "", body = ""] =
      /^HTTP\/1\.1 (\d+)[\s\S]*?\r\n\r\n([\s\S]*)$/.exec(answer) ?? [];
    return { status, body };
  } finally {
    socket.destroy();
  }
}

async function sendAll(
  socket: Socket,
  { begin, chunked, size }: { begin: string; chunked: boolean; size: number },
): Promise<void> {
  const write = (bytes: string | Buffer): Promise<void> =>
    new Promise((resolve) => void socket.write(bytes, () => resolve()));
  const piece = Buffer.alloc(MEBIBYTE / 4);
  for (let sent = 0; sent < size; sent += piece.length) {
    const next = sent === 0 ? Buffer.from(begin.padEnd(piece.length, "\0")) : piece;
    if (chunked) await write(`${next.length.toString(16)}\r\n`);
    await write(next);
    if (chunked) await write("\r\n");
  }
  if (chunked) await write("0\r\n\r\n");
}

async function readAll(socket: Socket): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

const json = { "Content-Type": "application/json" };
const user = (): { "X-Service-Api-Key": string } => ({
  "X-Service-Api-Key": forge.stack.keys.userKey,
});

test("the response of a model that has not read the whole body arrives", async () => {
  const { url } = await deploy(forge.user);
  for (const model of worker.served.values()) {
    model.answering = (_asked, answer) => void answer.writeHead(207).end();
  }
  const headers = { ...user(), Connection: "close" };
  // This size is below the limit for a model request, so the proxy itself does not refuse the body.
  const size = SIZE / 2 - MEBIBYTE;
  const request = { method: "POST", path: `${url}/files`, headers, chunked: true, size };
  expect((await answerTo(request)).status).toBe("207");
});

const REFUSALS: [string, string, () => Sent | Promise<Sent>][] = [
  [
    "no key",
    "403 invalid_api_key",
    () => ({ method: "POST", path: "/api/jobs/audit", headers: json }),
  ],
  [
    "an unknown path",
    "404 route_not_found",
    () => ({
      method: "POST",
      path: "/api/jbs/audit",
      headers: { ...user(), "Content-Type": "text/plain" },
    }),
  ],
  [
    "an unsupported method",
    "405 method_not_allowed",
    () => ({ method: "PUT", path: "/api/jobs", headers: { ...user(), ...json } }),
  ],
  [
    "another content type",
    "415 unsupported_media_type",
    () => ({
      method: "POST",
      path: "/api/jobs/audit",
      headers: { ...user(), "Content-Type": "text/plain" },
    }),
  ],
  [
    "a body declared as too large",
    "413 body_too_large",
    () => ({ method: "POST", path: "/api/jobs/audit", headers: { ...user(), ...json } }),
  ],
  [
    "a body that becomes too large",
    "413 body_too_large",
    () => ({
      method: "POST",
      path: "/api/jobs/audit",
      headers: { ...user(), ...json },
      chunked: true,
    }),
  ],
  [
    "a dataset whose first bytes are invalid",
    "400 invalid_request",
    () => ({
      method: "POST",
      path: "/api/datasets",
      headers: { ...user(), "Content-Type": "application/vnd.apache.parquet" },
      begin: "this is no parquet\n",
    }),
  ],
  [
    "too large a log",
    "413 log_too_large",
    async () => {
      const logger = await forge.worker("logger");
      await logger.register(undefined, { tags: ["logging"] });
      const resources = { tags: ["logging"] };
      const { job_id: id } = await forge.user.submit("audit", { ...AUDIT, resources });
      await logger.take();
      return {
        method: "PATCH",
        path: `/worker/jobs/${id}/log?worker_id=logger&attempt=1`,
        headers: {
          ...user(),
          "Content-Type": "text/plain",
          "Content-Range": `bytes 0-${SIZE - 1}/*`,
        },
      };
    },
  ],
  [
    "too large a model request",
    "413 body_too_large",
    async () => {
      const { url } = await deploy(forge.user);
      return { method: "POST", path: `${url}/files`, headers: user() };
    },
  ],
  [
    "a model request that becomes too large",
    "413 body_too_large",
    async () => {
      const { url } = await deploy(forge.user);
      for (const model of worker.served.values()) {
        model.answering = (asked, answer) => void asked.resume().once("end", () => answer.end());
      }
      return { method: "POST", path: `${url}/files`, headers: user(), chunked: true };
    },
  ],
  [
    "a request beyond the rate limit",
    "429 rate_limited",
    async () => {
      const ping = (): Promise<unknown> => forge.user.call("GET", "/api/auth/ping");
      await Promise.all(Array.from({ length: 2 * BURST }, ping));
      return { method: "POST", path: "/api/jobs/audit", headers: { ...user(), ...json } };
    },
  ],
];

test.each(REFUSALS)("%s: %s", async (_what, refusal, request) => {
  expect(await refusalOf(await request())).toBe(refusal);
});

test("an invalid HTTP request gets a response, however long it is", async () => {
  const { hostname, port } = new URL(forge.stack.apiUrl);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const broken = new Promise<never>((_resolve, reject) => socket.once("error", reject));
  const headers = `GET / HTTP/1.1\r\nX-Long: ${"x".repeat(MEBIBYTE)}\r\n\r\n`;
  await Promise.race([
    new Promise<void>((resolve) => void socket.write(headers, () => resolve())),
    broken,
  ]);
  expect(await Promise.race([readAll(socket), broken])).toMatch(/^HTTP\/1\.1 431 /);
  socket.destroy();
});
