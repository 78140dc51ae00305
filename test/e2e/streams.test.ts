import { appendFileSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { EventStream } from "../support/event-stream";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

beforeAll(async () => {
  forge = await startForge({ FORGE_MAX_WAITING_REQUESTS: "5" }, { own: ["server"] });
  worker = await forge.worker("w");
});

afterAll(async () => {
  await forge?.stop();
});

const statuses = (stream: EventStream): unknown[] =>
  stream.events.filter(({ event }) => event === "status").map(({ data }) => data.status);

/** Appends to an attempt's log file in the store. */
function appendLog(jobId: string, attempt: number, text: string): void {
  const file = join(forge.stack.storeDir, `artifacts/logs/${jobId}/attempt-${attempt}.log`);
  mkdirSync(dirname(file), { recursive: true });
  appendFileSync(file, text);
}

const textOf = (stream: EventStream): string =>
  stream.events
    .filter(({ event }) => event === "log")
    .map(({ data }) => data.text)
    .join("");

test("a job is followed from its submission to its end, in any process", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const other = new ApiClient(await forge.stack.startAnotherServer(), forge.stack.keys.userKey);
  const streams = [
    await EventStream.open(forge.user, `/api/jobs/${job_id}/events`),
    await EventStream.open(other, `/api/jobs/${job_id}/events`),
  ];
  const job = await worker.take();
  await worker.heartbeat({ job_id, attempt: 1, progress: 0.5 });
  for (const stream of streams) {
    await waitFor("the progress", () => stream.events.some(({ event }) => event === "progress"));
  }
  await worker.complete(job);
  for (const stream of streams) {
    await stream.ended;
    expect(statuses(stream)).toEqual(["pending", "assigned", "running", "completed"]);
    expect(stream.events.find(({ event }) => event === "progress")?.data).toEqual({
      job_id,
      progress: 0.5,
    });
    expect(stream.events.at(-1)?.data).toMatchObject({ attempts: 1, worker_id: "w" });
  }
  await forge.endTest();
});

test("a stream continues after the last received event, also when the job has ended", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const first = await EventStream.open(forge.user, `/api/jobs/${job_id}/events`);
  const job = await worker.take();
  await waitFor("running", () => statuses(first).includes("running"));
  first.close();
  await worker.fail(job);
  await untilEnded(forge.user, job_id);
  const running = first.events.find(({ data }) => data.status === "running");
  const rest = await EventStream.open(forge.user, `/api/jobs/${job_id}/events`, running?.id);
  await rest.ended;
  expect(rest.events.map(({ data }) => [data.status, data.error_code])).toEqual([
    ["failed", "job_error"],
  ]);
  const last = await EventStream.open(forge.user, `/api/jobs/${job_id}/events`, rest.events[0]?.id);
  await last.ended;
  expect([last.status, last.events]).toEqual([204, []]);
  await forge.endTest();
});

test("a log is followed as it grows, across a disconnect and a second attempt", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const path = `/api/jobs/${job_id}/logs?follow=true`;
  const first = await worker.take();
  appendLog(job_id, 1, "one\nhalf a li");
  const stream = await EventStream.open(forge.user, path);
  await waitFor("the first line", () => textOf(stream) === "one\n");
  appendLog(job_id, 1, "ne\r\x1b[1mtwo é\n");
  await waitFor("the second line", () => textOf(stream).endsWith("é\n"));
  stream.close();
  const seen = stream.events.at(-1)?.id;
  appendLog(job_id, 1, "while nobody looked");
  // A stream of one attempt ends with the attempt, although the job waits for the next one.
  const only = await EventStream.open(forge.user, `${path}&attempt=1`, "2-3");
  await worker.fail(first, { retryable: true });
  await only.ended;
  expect(textOf(only)).toBe("one\nhalf a line\r\x1b[1mtwo é\nwhile nobody looked");
  expect(only.events.at(-1)).toEqual({ event: "end", data: { job_id, status: "pending" } });
  const second = await worker.take();
  appendLog(job_id, 2, "another attempt\n");
  const rest = await EventStream.open(forge.user, path, seen);
  await waitFor("the second attempt", () => textOf(rest).includes("another attempt"));
  await worker.complete(second);
  await rest.ended;
  expect(textOf(stream)).toBe("one\nhalf a line\r\x1b[1mtwo é\n");
  expect(textOf(rest)).toBe("while nobody lookedanother attempt\n");
  expect(rest.events.map(({ data }) => data.attempt)).toEqual([1, 2, undefined]);
  expect(rest.events.at(-1)).toEqual({ event: "end", data: { job_id, status: "completed" } });
  await forge.endTest();
});

test("a log is read as a whole and by ranges", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const read = async (range?: string) => {
    const response = await fetch(`${forge.stack.apiUrl}/api/jobs/${job_id}/logs`, {
      headers: {
        "x-service-api-key": forge.stack.keys.userKey,
        ...(range === undefined ? {} : { range }),
      },
    });
    return [response.status, response.headers.get("content-range"), await response.text()];
  };
  expect(await read()).toEqual([200, null, ""]);
  const job = await worker.take();
  appendLog(job_id, 1, "0123456789");
  expect(await read()).toEqual([200, null, "0123456789"]);
  expect(await read("bytes=2-4")).toEqual([206, "bytes 2-4/10", "234"]);
  expect(await read("bytes=-3")).toEqual([206, "bytes 7-9/10", "789"]);
  expect(await read("bytes=10-")).toEqual([416, "bytes */10", expect.stringContaining("Range")]);
  await worker.complete(job);
  await untilEnded(forge.user, job_id);
  await forge.endTest();
});

test("a key has a maximum number of streams; an ended one frees its place", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const path = `/api/jobs/${job_id}/events`;
  const open = (): Promise<EventStream> => EventStream.open(forge.user, path);
  const streams = await Promise.all(Array.from({ length: 5 }, open));
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  const refused = await forge.user.call("GET", path);
  expect(refused).toMatchObject({ status: 429, body: { error: { code: "quota_exceeded" } } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  streams[0]?.close();
  const next = await waitFor("a place", async () => {
    const stream = await open();
    return stream.status === 200 && stream;
  });
  await worker.complete(await worker.take());
  await Promise.all([...streams, next].map((stream) => stream.ended));
  await untilEnded(forge.user, job_id);
  await forge.endTest();
});

test("HEAD of a stream is refused, as it would never end", async () => {
  const [jobId] = readdirSync(join(forge.stack.storeDir, "artifacts/logs"));
  const response = await fetch(`${forge.stack.apiUrl}/api/jobs/${jobId}/events`, {
    method: "HEAD",
    headers: { "x-service-api-key": forge.stack.keys.userKey },
  });
  expect([response.status, response.headers.get("allow")]).toEqual([405, "GET"]);
});

test("a stopping server ends its streams, and they continue with the next one", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const path = `/api/jobs/${job_id}/events`;
  const stream = await EventStream.open(forge.user, path);
  await waitFor("its first event", () => stream.events.length > 0);
  const began = performance.now();
  await forge.stack.server?.stop();
  await stream.ended;
  expect(performance.now() - began).toBeLessThan(10_000);
  await forge.stack.startServer();
  const rest = await EventStream.open(forge.user, path, stream.events.at(-1)?.id);
  await worker.complete(await worker.take());
  await rest.ended;
  expect(statuses(rest)).toEqual(["assigned", "running", "completed"]);
  await forge.endTest();
});
