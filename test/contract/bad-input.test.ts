/**
 * Every bad request gets a documented error that names the field. It creates no job, and the
 * process keeps running.
 */

import { connect } from "node:net";
import type { OpenApiDocument } from "../../platform/http/openapi";
import { maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { type Raw, WAYS } from "./bad-requests";

let forge: Forge;
let document: OpenApiDocument;

beforeAll(async () => {
  forge = await startForge({ FORGE_REQUEST_TIMEOUT_S: "2" });
  document = await forge.user.get<OpenApiDocument>("/openapi.json");
});

afterAll(async () => {
  await forge?.stop();
});

/** Sends a raw request and reads the single response. */
async function send({ method = "POST", path = "/api/jobs/audit", headers = [], body = "" }: Raw) {
  const { hostname, port } = new URL(forge.stack.apiUrl);
  const bytes = Buffer.from(body);
  const given = new Set(headers.map(([name]) => name.toLowerCase()));
  const standard: [string, string][] = [
    ["Host", "forge"],
    ["X-Service-Api-Key", forge.stack.keys.userKey],
    ["Content-Type", "application/json"],
    ["Content-Length", String(bytes.length)],
    ["Connection", "close"],
  ];
  const lines = [...standard.filter(([name]) => !given.has(name.toLowerCase())), ...headers]
    .filter(([, value]) => value !== "(none)")
    .map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    const parts: Buffer[] = [];
    socket.on("data", (part) => parts.push(part));
    socket.on("error", (error) => (parts.length > 0 ? undefined : reject(error)));
    socket.on("close", () => resolve(Buffer.concat(parts).toString()));
    socket.setTimeout(20_000, () => socket.destroy(new Error("no response within 20 s")));
    socket.write(Buffer.concat([head, bytes]));
  });
  const [answerHead = "", ...rest] = text.split("\r\n\r\n");
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(answerHead)?.[1]);
  const shown = rest.join("\r\n\r\n");
  const json = shown.slice(shown.indexOf("{"), shown.lastIndexOf("}") + 1);
  const { error } = JSON.parse(json) as { error: { code: string; param?: string } };
  return { status, code: error.code, ...(error.param === undefined ? {} : { param: error.param }) };
}

const countJobs = async (): Promise<number | undefined> =>
  (await maybeOne<{ count: number }>(forge.ctx.pool, "select count(*) from jobs"))?.count;

test("there are at least 60 kinds of bad requests", () => {
  expect(WAYS.length).toBeGreaterThanOrEqual(60);
});

test.each(WAYS)("%s", async (_what, request, refusal) => {
  const jobs = await countJobs();
  const answer = await send(request);
  expect(answer).toEqual(refusal);
  expect(isDocumented(request, answer.status)).toBe(true);
  expect(await countJobs()).toBe(jobs);
  expect((await forge.user.call("GET", "/api/auth/ping")).status).toBe(200);
});

/** The allowed statuses of requests that match no operation of the OpenAPI document. */
const ANYWHERE = [400, 403, 404, 405, 408, 431];

function isDocumented({ method = "POST", path = "/api/jobs/audit" }: Raw, status: number): boolean {
  const [bare = ""] = path.split("?");
  const canonical = bare.startsWith("/api") ? bare : `/api/jobs${bare}`;
  const operation = document.paths[canonical]?.[method.toLowerCase()];
  return operation
    ? String(status) in operation.responses || status === 431
    : ANYWHERE.includes(status);
}

test("a valid request still succeeds after all bad ones", async () => {
  expect(await forge.user.call("POST", "/audit", { dataset_uri: "s3://bucket/key" })).toMatchObject(
    {
      status: 201,
    },
  );
});
