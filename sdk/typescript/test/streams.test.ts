import { Forge, ForgeHTTPError, JobFailedError, WaitTimeoutError } from "../src/index.ts";
import { type Answer, FakeForge, job, json, KEY, refusal } from "./fake-forge.ts";
import { pauses } from "./pauses.ts";

jest.mock("../src/pause.ts", () => jest.requireActual("./pauses.ts"));

let server: FakeForge;

beforeEach(async () => {
  pauses.length = 0;
  server = await new FakeForge().start();
});

afterEach(async () => await server.stop());

const stream = (text: string, more: Partial<Answer> = {}): Answer => ({
  body: text,
  headers: { "Content-Type": "text/event-stream; charset=utf-8" },
  ...more,
});

const event = (id: number, name: string, data: object): string =>
  `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

const status = (id: number, value: string): string =>
  event(id, "status", { job_id: "job_1", status: value });

const isEvents = ({ path }: { path: string }): boolean => path.endsWith("/events");

async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test("events resume after an interruption without gaps", async () => {
  const first = status(1, "pending") + status(2, "assigned");
  const half = status(3, "running");
  server.play(
    stream(first + half, { cutAfter: first.length + half.length - 5 }),
    refusal(503, "restarting"),
    stream(`${half}: keep-alive\n\n${event(4, "progress", { job_id: "job_1", progress: 0.5 })}`),
    stream(status(5, "completed") + status(6, "never read"), { staysOpen: true }),
  );
  const events = await allOf(server.client().jobs.events("job_1"));
  expect(events.map((each) => each.raw_status ?? each.progress)).toEqual([
    "pending",
    "assigned",
    "running",
    0.5,
    "completed",
  ]);
  expect(events.map((each) => each.status)).toEqual([
    "pending",
    "pending",
    "running",
    undefined,
    "completed",
  ]);
  const resumed = server.asked.map(({ headers }) => headers["last-event-id"]);
  expect(resumed).toEqual([undefined, "2", "2", "4"]);
});

test("ending the iteration closes the connection", async () => {
  server.script = () => stream(status(1, "pending"), { staysOpen: true });
  for await (const each of server.client().jobs.events("job_1")) {
    expect(each.status).toBe("pending");
    break;
  }
  await until(() => server.open === 0);
  const controller = new AbortController();
  const { signal } = controller;
  const following = allOf(server.client().jobs.logs("job_1", { follow: true, signal }));
  await until(() => server.open === 1);
  controller.abort(new Error("enough"));
  await expect(following).rejects.toThrow("enough");
  await until(() => server.open === 0);
});

test("an invalid or refused stream is an error", async () => {
  server.script = () => json({});
  const { jobs } = server.client();
  await expect(allOf(jobs.events("job_1"))).rejects.toThrow("not an event stream");
  server.script = () => refusal(404, "job_not_found");
  await expect(allOf(jobs.logs("job_1", { follow: true }))).rejects.toThrow("job_not_found");
  server.script = () => ({ status: 204, body: "" });
  expect(await allOf(jobs.events("job_1"))).toEqual([]);
});

test("lines of a log in any chunks, across attempts and interruptions", async () => {
  const log = (id: number, offset: number, text: string) => event(id, "log", { offset, text });
  server.play(
    stream(log(1, 0, "one\ntw") + log(2, 6, "ö\r\nrest")),
    stream(log(3, 0, "again\n\nlast") + event(4, "end", {}), { staysOpen: true }),
  );
  const lines = await allOf(server.client().jobs.logs("job_1", { follow: true, attempt: 2 }));
  expect(lines).toEqual(["one", "twö\r", "rest", "again", "", "last"]);
  expect(server.asked[0]?.path).toBe("/api/jobs/job_1/logs?follow=true&attempt=2");
});

test("a log as a string, or its end", async () => {
  server.script = () => ({ body: "ö\n", headers: { "Content-Type": "text/plain" } });
  const { jobs } = server.client();
  expect(await jobs.logs("job_1")).toBe("ö\n");
  await jobs.logs("job_1", { tailBytes: 3 });
  expect(server.asked[1]?.headers.range).toBe("bytes=-3");
  await expect(jobs.logs("job_1", { tailBytes: 0 })).rejects.toThrow("tailBytes must be");
});

test("wait uses events, and polls after the end event", async () => {
  let state = "running";
  server.script = (asked) => {
    if (!isEvents(asked)) return job({ status: state, result: { a: 1 } });
    state = "completed";
    return stream(status(1, "running") + status(2, "completed"), { staysOpen: true });
  };
  const heard: unknown[] = [];
  const done = await server.client().wait("job_1", { onEvent: (each) => heard.push(each.status) });
  expect(done.result).toEqual({ a: 1 });
  expect(heard).toEqual(["running", "completed"]);
  expect(server.asked).toHaveLength(3);
  expect(pauses.every((ms) => ms === 0)).toBe(true);
});

test("wait polls if no events arrive", async () => {
  let questions = 0;
  server.script = (asked) => {
    if (isEvents(asked)) return refusal(404, "no_such_route");
    questions += 1;
    return job({ status: questions > 30 ? "completed" : "running" });
  };
  await server.client().wait("job_1", { pollInterval: 2 });
  expect(pauses).toHaveLength(30);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(2000);
  expect(Math.min(...pauses)).toBeGreaterThan(1000);
  // Rounds 1 and 2 open event connections (MAX_SILENT in waiting.ts). After that, a round opens one
  // if the number of rounds before it is a multiple of 12 (RETRY_EVERY): rounds 13 and 25.
  expect(server.asked.filter(isEvents)).toHaveLength(4);
});

test("wait survives a restart: refused, interrupted, errors of a proxy", async () => {
  const faults = ["cut", refusal(503, "restarting"), { status: 502, body: "<html>" }] as const;
  let questions = 0;
  server.script = (asked) => {
    if (isEvents(asked)) return "cut";
    questions += 1;
    return questions < 20 ? faults[questions % 3] : job({ status: "completed" });
  };
  expect((await server.client().wait("job_1")).status).toBe("completed");
  expect(pauses.length).toBeGreaterThanOrEqual(19);
});

test("in an outage, a long Retry-After is limited to one minute", async () => {
  const busy = refusal(429, "rate_limited", { "Retry-After": "3600" });
  server.play(busy, job({ status: "completed" }));
  expect((await server.client().wait("job_1")).status).toBe("completed");
  server.play(busy, stream(event(1, "end", {})));
  expect(await allOf(server.client().jobs.logs("job_1", { follow: true }))).toEqual([]);
  expect(pauses).toEqual([60_000, 60_000]);
});

test("a job that fails rejects with the worker's message", async () => {
  server.script = () => job({ status: "failed", error: "no memory", error_code: "job_error" });
  const waiting = server.client().wait("job_1");
  await expect(waiting).rejects.toBeInstanceOf(JobFailedError);
  await expect(waiting).rejects.toMatchObject({
    message: "no memory",
    job: { error_code: "job_error", job_id: "job_1" },
  });
});

test("wait times out", async () => {
  server.script = (asked) =>
    isEvents(asked)
      ? stream(status(1, "running"), { staysOpen: true })
      : job({ status: "running" });
  const client = server.client();
  const waiting = client.wait("job_1", { timeout: 0.2 });
  await expect(waiting).rejects.toBeInstanceOf(WaitTimeoutError);
  await expect(waiting).rejects.toThrow("job_1 is running after 0.2 s; it goes on");
  await until(() => server.open === 0);
  await expect(client.wait("job_1", { pollInterval: 0 })).rejects.toThrow("pollInterval must be");
});

test("wait ends with a signal, and with an error of onEvent", async () => {
  server.script = (asked) =>
    isEvents(asked)
      ? stream(status(1, "running"), { staysOpen: true })
      : job({ status: "running" });
  const controller = new AbortController();
  const reason = new Error("gone home");
  const waiting = server
    .client()
    .wait("job_1", { signal: controller.signal, onEvent: () => controller.abort(reason) });
  await expect(waiting).rejects.toBe(reason);
  await until(() => server.open === 0);
  const onEvent = (): never => {
    throw new Error("a listener's own");
  };
  await expect(server.client().wait("job_1", { onEvent })).rejects.toThrow("a listener's own");
  await until(() => server.open === 0);
});

test("waiting for a pipeline polls", async () => {
  const states = ["running", "running", "waiting_approval", "completed"];
  server.script = () => json({ pipeline_id: "p", status: states.shift(), completed_at: null });
  const { pipelines } = server.client();
  const seen: string[] = [];
  const onUpdate = ({ status }: { status: string }) => seen.push(status);
  const stopped = await pipelines.wait("p", { pollInterval: 1, onUpdate, stopAtApproval: true });
  expect([stopped.status, ...seen]).toEqual(["waiting_approval", "running", "waiting_approval"]);
  expect((await pipelines.wait("p")).status).toBe("completed");
  server.script = () => json({ pipeline_id: "p", status: "failed", error: "gate" });
  await expect(pipelines.wait("p")).rejects.toThrow("gate");
});

test("a model's response as events, in any chunks", async () => {
  const text =
    'data: {"a":\r\ndata: 1}\r\n\r\n: comment\n\nevent: x\rdata:  two\r\rdata: [DONE]\n\n';
  const answer = stream("");
  const parts = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of new TextEncoder().encode(text)) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const given = async () => new Response(parts, answer);
  const client = new Forge({ apiKey: KEY, baseUrl: "http://x", fetch: given });
  const events = await allOf(client.deployments.stream("d", "chat/completions", {}));
  expect(events.map(({ event: name, data }) => [name, data])).toEqual([
    ["message", '{"a":\n1}'],
    ["x", " two"],
    ["message", "[DONE]"],
  ]);
  server.script = () => "cut";
  const broken = allOf(server.client().deployments.stream("d", "chat/completions", {}));
  await expect(broken).rejects.toBeInstanceOf(ForgeHTTPError);
  expect(server.asked).toHaveLength(1);
});

test("an event without end is an error", async () => {
  for (const end of ["", "\n"]) {
    const piece = new TextEncoder().encode(`data: ${"x".repeat(4_000_000)}${end}`);
    let pieces = 0;
    const parts = new ReadableStream<Uint8Array>({
      pull(controller) {
        pieces += 1;
        controller.enqueue(piece);
      },
    });
    const given = async () => new Response(parts, stream(""));
    const client = new Forge({ apiKey: KEY, baseUrl: "http://x", fetch: given });
    const events = allOf(client.deployments.stream("d", "chat/completions", {}));
    await expect(events).rejects.toThrow("event stream is too long");
    expect(pieces).toBeLessThan(8);
  }
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}
