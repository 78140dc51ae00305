import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../../dev/api-client";
import { HOSTILE_FILES } from "./hostile-files";

/**
 * A tenant that does its worst, in a process of its own: `node hostile-tenant.js API_URL USER_KEY`, until it
 * is killed. It writes a line of JSON a second: how often each attack was answered with which status. Its
 * own work gives way to the server's, as if it ran elsewhere.
 */
const [apiUrl = "", userKey = ""] = process.argv.slice(2);
const user = new ApiClient(apiUrl, userKey);
const WORKERS = 1_500;
const SHAPES = 1_500;
const POLLS = 300;
const STREAMS = 300;
const UPLOADS = 64;
const LOOPS = 40;

const answers: Record<string, Record<string, number>> = {};

async function counted(attack: string, work: () => Promise<number>): Promise<void> {
  const status = await work().catch((error: Error) => error.name);
  const ofAttack = answers[attack] ?? {};
  answers[attack] = { ...ofAttack, [status]: (ofAttack[status] ?? 0) + 1 };
  // Refused at once, it would only heat its own machine.
  if (status === 429 || typeof status === "string") await sleep(50);
}

async function forEver(attack: string, work: (n: number) => Promise<number>): Promise<never> {
  for (let n = 0; ; n++) await counted(attack, () => work(n));
}

const many = (count: number, start: (n: number) => void): void => {
  for (let n = 0; n < count; n++) start(n);
};

const statusOf = async (answer: Promise<{ status: number }>): Promise<number> =>
  (await answer).status;

async function read(path: string, key: string, init: RequestInit = {}): Promise<number> {
  const response = await fetch(`${apiUrl}${path}`, {
    ...init,
    headers: { "x-service-api-key": key, ...init.headers },
  });
  // To its end: a stream stays open.
  for await (const _ of response.body ?? []);
  return response.status;
}

const TYPES = {
  parquet: "application/vnd.apache.parquet",
  csv: "text/csv",
  jsonl: "application/x-ndjson",
};

function bombs(): void {
  const files = HOSTILE_FILES.map(({ format, bytes }) => ({ format, bytes: bytes() }));
  many(4, (lane) => {
    forEver("tables", async (n) => {
      const file = files[(lane + n) % files.length];
      if (!file) return 0;
      const headers = { "content-type": TYPES[file.format] };
      return await read(`/api/datasets?name=bomb`, userKey, {
        method: "POST",
        headers,
        body: file.bytes,
      });
    });
  });
}

async function keys(): Promise<string[]> {
  const made: string[] = [];
  for (let n = 0; n < 60; n++) {
    const { body } = await user.call<{ key?: string }>("POST", "/api/auth/api-keys", {
      name: `k${n}`,
    });
    if (body.key) made.push(body.key);
  }
  return made;
}

function uploads(): void {
  many(UPLOADS, () => {
    forEver("uploads", async () => {
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          await sleep(500);
          controller.enqueue(Buffer.from("a,b\n"));
        },
      });
      const init = {
        method: "POST",
        headers: { "content-type": "text/csv" },
        body,
        duplex: "half",
      };
      return await read("/api/datasets?name=slow", userKey, init as RequestInit);
    });
  });
}

async function fleet(workerKey: string): Promise<void> {
  const worker = new ApiClient(apiUrl, workerKey);
  const register = (n: number): Promise<number> =>
    statusOf(
      worker.call("POST", "/worker/register", {
        worker_id: `mallory-${n}`,
        gpu: { name: "NVIDIA A100", memory_gb: 1 + n / 100 },
      }),
    );
  for (let n = 0; n < WORKERS; n += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, at) => counted("workers", () => register(n + at))),
    );
  }
  many(POLLS, (n) => {
    forEver("polls", () =>
      statusOf(
        worker.call("POST", "/worker/next_job", { worker_id: `mallory-${n}`, wait_seconds: 5 }),
      ),
    );
  });
  many(LOOPS, (lane) => {
    forEver("registrations", (n) => register((lane * 37 + n) % WORKERS));
  });
}

async function shapes(): Promise<string[]> {
  const jobs: string[] = [];
  for (let n = 0; n < SHAPES; n++) {
    await counted("jobs", async () => {
      const body = {
        dataset_uri: "s3://b/d",
        resources: { gpu: 8, memory_gb: 100, tags: [`t${n}`] },
      };
      const { status, body: job } = await user.call<{ job_id?: string }>(
        "POST",
        "/api/jobs/audit",
        body,
      );
      if (job.job_id) jobs.push(job.job_id);
      return status;
    });
    if (answers.jobs?.[429]) break;
  }
  return jobs;
}

async function main(): Promise<void> {
  setPriority(19);
  process.on("unhandledRejection", () => undefined);
  setInterval(() => process.stdout.write(`${JSON.stringify(answers)}\n`), 1_000);
  const { key: workerKey } = await user.post<{ key: string }>("/api/auth/api-keys", {
    name: "boxes",
    scope: "worker",
  });
  const [all, jobs] = await Promise.all([keys(), shapes(), fleet(workerKey)]);
  bombs();
  uploads();
  many(STREAMS, (n) => {
    const path = `/api/jobs/${jobs[n % jobs.length]}/${n % 2 ? "events" : "logs?follow=true"}`;
    forEver("streams", () => read(path, userKey));
  });
  many(LOOPS, (n) => {
    const key = all[n % all.length] ?? userKey;
    forEver("reads", (at) =>
      read(["/api/jobs?limit=200", "/api/workers", "/api/billing/summary"][at % 3] ?? "", key),
    );
    forEver("unknown keys", () => read("/api/jobs", `forge_user_${n}`));
  });
}

void main();
