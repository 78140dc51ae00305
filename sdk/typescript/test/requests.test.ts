import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import {
  BadRequestError,
  ConflictError,
  Forge,
  ForgeAPIError,
  ForgeError,
  ForgeHTTPError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  VERSION,
} from "../src/index.ts";
import { FakeForge, job, json, KEY, refusal } from "./fake-forge.ts";
import { pauses } from "./pauses.ts";

jest.mock("../src/pause.ts", () => jest.requireActual("./pauses.ts"));

let server: FakeForge;

beforeEach(async () => {
  pauses.length = 0;
  server = await new FakeForge().start();
});

afterEach(async () => await server.stop());

const failureOf = async (promise: Promise<unknown>): Promise<Error> =>
  await promise.then(
    () => {
      throw new Error("it was to fail");
    },
    (error: Error) => error,
  );

test("a request has the key, the client's version and the parameters", async () => {
  server.script = () => job();
  await server.client().train({ model: "m", dataset_id: "d", tags: ["a"], notes: undefined });
  const [{ method, path, headers, body }] = server.asked as [(typeof server.asked)[0]];
  expect([method, path]).toEqual(["POST", "/api/jobs/train"]);
  expect(headers["x-service-api-key"]).toBe(KEY);
  expect(headers["x-forge-client"]).toMatch(/^sdk-typescript\/\d+\.\d+\.\d+$/);
  expect(headers["content-type"]).toBe("application/json");
  expect(JSON.parse(String(body))).toEqual({
    model: "m",
    dataset_id: "d",
    tags: ["a"],
    epochs: 3,
  });
});

test("a job has one of four statuses, the API's status, and unknown fields", async () => {
  const answers = [
    ["provisioning_worker", null, "pending"],
    ["assigned", null, "pending"],
    ["running", null, "running"],
    ["failed", "2026-11-01T00:00:00.000Z", "failed"],
    ["of_later", null, "pending"],
    ["of_later", "2026-11-01T00:00:00.000Z", "failed"],
  ] as const;
  for (const [raw, ended, status] of answers) {
    server.script = () =>
      job({ status: raw, completed_at: ended, later: 1, logs: "hides nothing" });
    const found = await server.client().status("job_1");
    expect([found.status, found.raw_status]).toEqual([status, raw]);
    expect(JSON.parse(JSON.stringify(found))).toMatchObject({ job_id: "job_1", status, later: 1 });
    expect(found.logs).toBeInstanceOf(Function);
    expect(inspect(found, { depth: 9, showHidden: true })).not.toContain(KEY);
  }
});

test.each([
  [400, BadRequestError],
  [403, PermissionDeniedError],
  [404, NotFoundError],
  [409, ConflictError],
  [418, ForgeAPIError],
])("%d has its own error class and is not retried", async (status, kind) => {
  server.script = () => refusal(status, "some_code");
  const error = await failureOf(server.client().service.ping());
  expect(error.constructor).toBe(kind);
  expect(error).toBeInstanceOf(ForgeError);
  expect(error).toMatchObject({ status, code: "some_code", param: "x", request_id: "req_1" });
  expect(error.message).toBe(`some_code: no (HTTP ${status}, request req_1)`);
  expect(server.asked).toHaveLength(1);
});

test("transient failures are retried with one idempotency key and increasing pauses", async () => {
  const faults = [refusal(503, "down"), "cut", refusal(409, "request_in_flight")] as const;
  server.play(...faults, { status: 502, body: "<html>" }, job());
  await server.client().audit({ dataset_uri: "s3://b/k" });
  const keys = new Set(server.asked.map(({ headers }) => headers["idempotency-key"]));
  expect(server.asked).toHaveLength(5);
  expect(keys.size).toBe(1);
  expect([...keys][0]).toMatch(/^sdk-[0-9a-f]{32}$/);
  expect(pauses).toHaveLength(4);
  for (const [n, ms] of pauses.entries()) {
    expect(ms).toBeGreaterThanOrEqual(125 * 2 ** n);
    expect(ms).toBeLessThanOrEqual(250 * 2 ** n);
  }
});

test("a given idempotency key is sent with each try", async () => {
  server.play("cut", job());
  await server.client().generate({ domain: "law", num_samples: 1 }, { idempotencyKey: "mine" });
  expect(server.asked.map(({ headers }) => headers["idempotency-key"])).toEqual(["mine", "mine"]);
  const wrong = server.client().audit({ dataset_uri: "s3://b/k" }, { idempotencyKey: " bad" });
  await expect(wrong).rejects.toThrow("idempotencyKey must be");
});

test("Retry-After in seconds or as a date is respected, unless it is too long", async () => {
  const date = new Date(Date.now() + 20_000).toUTCString();
  server.play(
    refusal(429, "rate_limited", { "Retry-After": "7" }),
    refusal(429, "rate_limited", { "Retry-After": date }),
    json({ ok: true }),
  );
  await server.client().service.ping();
  expect(pauses[0]).toBe(7000);
  expect(pauses[1]).toBeGreaterThan(15_000);
  server.script = () => refusal(429, "rate_limited", { "Retry-After": "3600" });
  expect(await failureOf(server.client().service.ping())).toBeInstanceOf(RateLimitError);
  expect(pauses).toHaveLength(2);
});

test("after all tries, the last response is the error", async () => {
  server.script = () => refusal(503, "postgres_away");
  const error = await failureOf(server.client({ maxRetries: 2 }).service.ping());
  expect(error).toBeInstanceOf(ForgeHTTPError);
  expect(error).toMatchObject({ status: 503, code: "postgres_away", request_id: "req_1" });
  expect(server.asked).toHaveLength(3);
  await failureOf(server.client().service.ping({ maxRetries: 0 }));
  expect(server.asked).toHaveLength(4);
});

test("a request to a model is not retried if it may have arrived", async () => {
  server.script = () => "cut";
  const ask = () => server.client().deployments.ask("d", "chat/completions", { messages: [] });
  expect(await failureOf(ask())).toBeInstanceOf(ForgeHTTPError);
  expect(server.asked).toHaveLength(1);
  server.play(refusal(503, "deployment_not_ready"), json({ choices: [] }));
  expect(await ask()).toEqual({ choices: [] });
  expect(server.asked.at(-1)?.path).toBe("/api/deployments/d/v1/chat/completions");
});

test("an unreachable server: retries requests that can't have arrived, then names the address", async () => {
  const { url } = server;
  await server.stop();
  const client = new Forge({ apiKey: KEY, baseUrl: url, maxRetries: 1 });
  const error = await failureOf(client.deployments.ask("d", "x", {}));
  expect(error).toBeInstanceOf(ForgeHTTPError);
  expect(error.message).toContain(`${url}/api/deployments/d/v1/x: connect ECONNREFUSED`);
  expect(pauses).toHaveLength(1);
  server = await new FakeForge().start();
});

test("a silent server causes a time-out", async () => {
  server.script = () => "silent";
  const client = server.client({ timeoutMs: 50, maxRetries: 1 });
  const error = await failureOf(client.service.ping());
  expect(error.message).toContain("no response within 0.05 s");
  expect(server.asked).toHaveLength(2);
  server.script = () => ({ body: '{"ok"', staysOpen: true });
  expect((await failureOf(client.service.ping())).message).toContain("no response within 0.05 s");
});

test("an aborted signal rejects with its reason and closes the connection", async () => {
  server.script = () => "silent";
  const reason = new Error("changed my mind");
  const controller = new AbortController();
  const pending = failureOf(server.client().service.ping({ signal: controller.signal }));
  await until(() => server.asked.length === 1);
  controller.abort(reason);
  expect(await pending).toBe(reason);
  await until(() => server.open === 0);
  const late = server.client().service.ping({ signal: controller.signal });
  expect(await failureOf(late)).toBe(reason);
  expect(server.asked).toHaveLength(1);
});

test("ids that would change the path are not sent", async () => {
  const client = server.client();
  for (const id of ["../admin", "a/b", "", ".", "a?b", 7, undefined]) {
    await expect(client.status(id as string)).rejects.toThrow(/is not the id of a job/);
  }
  await expect(client.artifacts.get("..")).rejects.toThrow('".." is not the id of an artifact');
  await expect(client.deployments.ask("d", "a/../b")).rejects.toThrow("is not a valid path");
  expect(server.asked).toHaveLength(0);
});

test("errors and printed clients do not contain the key", async () => {
  const client = server.client();
  expect(inspect(client, { depth: 9 })).not.toContain(KEY);
  expect(JSON.stringify(client)).not.toContain(KEY);
  for (const apiKey of ["with space and secret", "sécret", "line\nsecret"]) {
    expect(() => new Forge({ apiKey, baseUrl: server.url })).toThrow(
      /SERVICE_API_KEY is not a key/,
    );
    expect(() => new Forge({ apiKey, baseUrl: server.url })).not.toThrow(/secret/);
  }
  for (const baseUrl of ["forge.example.com", "ftp://x", "http://a:b@c", "http://x/?key=1"]) {
    expect(() => new Forge({ apiKey: KEY, baseUrl })).toThrow(/SERVICE_BASE_URL must be/);
  }
});

test("options are validated, and withOptions changes a copy", async () => {
  expect(() => server.client({ timeoutMs: 0 })).toThrow("timeoutMs must be more than 0");
  const client = server.client();
  server.script = () => refusal(503, "down");
  await failureOf(client.withOptions({ maxRetries: 0 }).service.ping());
  expect(server.asked).toHaveLength(1);
  await failureOf(client.service.ping());
  expect(server.asked).toHaveLength(6);
});

test("the version is the package's", () => {
  const { version } = JSON.parse(readFileSync(join(__dirname, "../package.json"), "utf8"));
  expect(VERSION).toBe(version);
});

test("an outdated client warns once and works", async () => {
  const answer = json({ ok: true });
  const headers = { "X-Forge-Version": "9.1.0", "X-Forge-Min-Client": "9.0.0" };
  server.script = () => ({ ...answer, headers });
  const warnings: string[] = [];
  const client = server.client({ onWarning: (message) => warnings.push(message) });
  for (const each of [client, client, client.withOptions({ maxRetries: 1 })]) {
    expect(await each.service.ping()).toEqual({ ok: true });
  }
  expect(warnings).toEqual([expect.stringMatching(/^Forge 9\.1\.0 requires @forge\/sdk 9\.0\.0/)]);
  server.script = () => ({ ...answer, headers: { "X-Forge-Min-Client": "0.0.9" } });
  await server.client({ onWarning: (message) => warnings.push(message) }).service.ping();
  expect(warnings).toHaveLength(1);
});

test("lists are fetched page by page, on demand", async () => {
  const ids = Array.from({ length: 7 }, (_, n) => ({ job_id: `j${n}`, status: "pending" }));
  server.script = ({ path }) => {
    const query = new URL(path, server.url).searchParams;
    const start = Number(query.get("after") ?? 0);
    const end = start + Number(query.get("limit") ?? 3);
    const has_more = end < ids.length;
    return json({ jobs: ids.slice(start, end), has_more, next_cursor: has_more ? `${end}` : null });
  };
  const { jobs } = server.client();
  expect((await jobs.list().toArray()).map(({ job_id }) => job_id)).toHaveLength(7);
  expect(server.asked).toHaveLength(3);
  const five = jobs.list({ limit: 5, pageSize: 2, tag: ["a", "b"], created_after: new Date(0) });
  expect(await five.toArray()).toHaveLength(5);
  expect(server.asked.at(-1)?.path).toBe(
    "/api/jobs?tag=a&tag=b&created_after=1970-01-01T00%3A00%3A00.000Z&limit=1&after=4",
  );
  for await (const each of jobs.list()) {
    expect(each.job_id).toBe("j0");
    break;
  }
  expect(server.asked).toHaveLength(7);
  expect(await jobs.list({ pageSize: 2 }).page("4")).toMatchObject({ next_cursor: "6" });
  expect(await jobs.list({ limit: 0 }).toArray()).toEqual([]);
  expect(() => jobs.list({ limit: -1 })).toThrow("limit must not be negative");
  server.script = () => json({ jobs: [], has_more: true, next_cursor: "same" });
  await expect(jobs.list().toArray()).rejects.toThrow("leads to the same page");
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}
