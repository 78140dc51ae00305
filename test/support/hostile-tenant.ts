/**
 * Usage: `node hostile-tenant.js API_URL USER_KEY [ATTACK …]`.
 *
 * Attacks the server as a tenant, until this process is killed. Writes one line of JSON per second.
 * For each attack, the line has the number of requests, and the number of responses with each
 * status. Runs at low priority, so that its own work does not slow the server.
 */

import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../../dev/api-client";
import { mintKey } from "../../services/accounts/key-format";
import { CONTENT_TYPES } from "./content-types";
import { HOSTILE_FILES } from "./hostile-files";

const [apiUrl = "", userKey = "", ...chosen] = process.argv.slice(2);
const user = new ApiClient(apiUrl, userKey);
const WORKERS = 1_500;
const SHAPES = 1_500;
const POLLS = 300;
const STREAMS = 300;
const UPLOADS = 64;
const LOOPS = 40;

const answers: Record<string, Record<string, number>> = {};

function note(attack: string, what: string | number): void {
  const ofAttack = answers[attack] ?? {};
  answers[attack] = { ...ofAttack, [what]: (ofAttack[what] ?? 0) + 1 };
}

async function counted(attack: string, work: () => Promise<number>): Promise<void> {
  note(attack, "begun");
  const status = await work().catch((error: Error) => error.name);
  note(attack, status);
  // After a refusal, wait: an immediate retry would only load this machine.
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
  // Read the body to its end, so that the connection of an event stream stays open.
  for await (const _ of response.body ?? []);
  return response.status;
}

/** Uploads tables that are built to harm the code that reads them. */
async function tables(): Promise<void> {
  const files = HOSTILE_FILES.map(({ format, bytes }) => ({ format, bytes: bytes() }));
  many(4, (lane) => {
    forEver("tables", async (n) => {
      const file = files[(lane + n) % files.length];
      if (!file) return 0;
      const headers = { "content-type": CONTENT_TYPES[file.format] };
      const init = { method: "POST", headers, body: file.bytes };
      return await read("/api/datasets?name=bomb", userKey, init);
    });
  });
}

/** Uploads very slowly. */
async function uploads(): Promise<void> {
  many(UPLOADS, () => {
    forEver("uploads", async () => {
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          await sleep(500);
          controller.enqueue(Buffer.from("a,b\n"));
        },
      });
      const headers = { "content-type": "text/csv" };
      const init = { method: "POST", headers, body, duplex: "half" };
      return await read("/api/datasets?name=slow", userKey, init as RequestInit);
    });
  });
}

/** Requests the most expensive pages with many keys. */
async function reads(): Promise<void> {
  const keys: string[] = [];
  for (let n = 0; n < 60; n++) {
    const body = { name: `k${n}` };
    const made = await user.call<{ key?: string }>("POST", "/api/auth/api-keys", body);
    if (made.body.key) keys.push(made.body.key);
  }
  const paths = ["/api/jobs?limit=200", "/api/workers", "/api/billing/summary"];
  many(LOOPS, (n) => {
    const key = keys[n % keys.length] ?? userKey;
    forEver("reads", (at) => read(paths[at % paths.length] ?? "", key));
  });
}

/** Sends unknown keys. */
async function guesses(): Promise<void> {
  many(LOOPS, () => {
    forEver("guesses", () => read("/api/jobs", mintKey("user")));
  });
}

/** Registers workers with different amounts of memory again and again, and polls. */
async function fleet(): Promise<void> {
  const body = { name: "boxes", scope: "worker" };
  const { key } = await user.post<{ key: string }>("/api/auth/api-keys", body);
  const worker = new ApiClient(apiUrl, key);
  const register = (n: number): Promise<number> =>
    statusOf(
      worker.call("POST", "/worker/register", {
        worker_id: `mallory-${n}`,
        gpu: { name: "NVIDIA A100", memory_gb: 1 + n / 100 },
      }),
    );
  const all = Array.from({ length: WORKERS }, (_, n) => n);
  await Promise.all(all.map((n) => counted("workers", () => register(n))));
  many(POLLS, (n) => {
    const poll = { worker_id: `mallory-${n}`, wait_seconds: 5 };
    forEver("polls", () => statusOf(worker.call("POST", "/worker/next_job", poll)));
  });
  many(LOOPS, (lane) => {
    forEver("registrations", (n) => register((lane * 37 + n) % WORKERS));
  });
}

/**
 * Submits jobs with as many different requirements as allowed, then streams their events and logs.
 */
async function streams(): Promise<void> {
  const jobs: string[] = [];
  const submit = async (n: number): Promise<number> => {
    const resources = { gpu: 8, memory_gb: 100, tags: [`t${n}`] };
    const body = { dataset_uri: "s3://b/d", resources };
    const made = await user.call<{ job_id?: string }>("POST", "/api/jobs/audit", body);
    if (made.body.job_id) jobs.push(made.body.job_id);
    return made.status;
  };
  for (let n = 0; n < SHAPES && !answers.jobs?.[429]; n += LOOPS) {
    const some = Array.from({ length: LOOPS }, (_, at) => counted("jobs", () => submit(n + at)));
    await Promise.all(some);
  }
  many(STREAMS, (n) => {
    const path = `/api/jobs/${jobs[n % jobs.length]}/${n % 2 ? "events" : "logs?follow=true"}`;
    forEver("streams", () => read(path, userKey));
  });
}

/** Polls over raw connections, without waiting for a response before the next request. */
async function pipelines(): Promise<void> {
  const { hostname, port } = new URL(apiUrl);
  const body = '{"worker_id":"mallory-0","wait_seconds":30}';
  const poll = Buffer.from(
    `POST /worker/next_job HTTP/1.1\r\nHost: x\r\nX-Service-Api-Key: ${userKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const batch = Buffer.concat(Array(20).fill(poll));
  const round = (): Promise<number> =>
    new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port) });
      const sending = setInterval(() => socket.write(batch), 100);
      socket.resume().on("error", () => undefined);
      socket.once("close", () => {
        clearInterval(sending);
        resolve(429);
      });
    });
  many(LOOPS, () => {
    forEver("pipelines", round);
  });
}

/** Sends bodies that are expensive to read, also to routes without a rate limit. */
async function bodies(): Promise<void> {
  const body = `{"worker_id":"x","p":[${Array(70_000).fill("[]").join(",")}]}`;
  const bomb = `{"p":[${Array(340_000).fill("[]").join(",")}]}`;
  const paths = ["/api/jobs/audit", "/worker/register", "/worker/heartbeat", "/worker/job_result"];
  many(20, (lane) => {
    forEver("bodies", async (n) => {
      const init = {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: n % 2 ? body : bomb,
      };
      return await read(paths[(lane + n) % paths.length] ?? "", userKey, init);
    });
  });
}

const ATTACKS = { tables, uploads, reads, guesses, fleet, streams };
/** These attacks start only when the others have begun. Otherwise they would delay the others. */
const FLOODS = { pipelines, bodies };

/**
 * Lowers the priority of this process. With autogroups (Linux), a priority only counts within a
 * session, so the session's priority is lowered, too. The test starts this process in a new
 * session.
 */
function yieldCpu(): void {
  setPriority(19);
  try {
    writeFileSync("/proc/self/autogroup", "19");
  } catch {
    // Not Linux, or a kernel without autogroups: the process's priority is enough.
  }
}

function main(): void {
  yieldCpu();
  process.on("unhandledRejection", () => undefined);
  setInterval(() => process.stdout.write(`${JSON.stringify(answers)}\n`), 1_000);
  for (const [name, attack] of Object.entries(ATTACKS)) {
    if (chosen.length === 0 || chosen.includes(name)) void attack();
  }
  const isReady = (): boolean =>
    chosen.length > 0 || ["streams", "reads", "polls"].every((name) => answers[name]?.begun);
  const waiting = setInterval(() => {
    if (!isReady()) return;
    clearInterval(waiting);
    for (const [name, flood] of Object.entries(FLOODS)) {
      if (chosen.length === 0 || chosen.includes(name)) void flood();
    }
  }, 100);
}

main();
