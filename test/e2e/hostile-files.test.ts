import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { CONTENT_TYPES } from "../support/content-types";
import { type Forge, startForge } from "../support/forge";
import { HOSTILE_FILES } from "../support/hostile-files";
import { untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_PREVIEW_TIMEOUT_S: "10" }, { own: ["server"] });
});

afterAll(async () => {
  await forge?.stop();
});

async function send(method: string, path: string, key: string, type: string, body: Buffer) {
  const response = await fetch(`${forge.stack.apiUrl}${path}`, {
    method,
    headers: {
      "x-service-api-key": key,
      "content-type": type,
      "x-checksum-sha256": createHash("sha256").update(body).digest("hex"),
    },
    body,
  });
  return { status: response.status, body: (await response.json()) as { error?: object } };
}

/** A minimal server in its own process. Its response times show how slow the machine is. */
async function bareServer(): Promise<{ url: string; end(): void }> {
  const code = `const server = require("node:http").createServer((_, answer) => answer.end("{}"));
    server.listen(0, "127.0.0.1", () => console.log(server.address().port));`;
  const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return { url: `http://127.0.0.1:${String(port).trim()}/`, end: () => child.kill("SIGKILL") };
}

const taken = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

/**
 * The longest wait of another tenant for a response during `work`, in ms, minus the longest wait
 * for a bare server at the same time.
 */
async function worstWaitDuring(work: () => Promise<unknown>): Promise<number> {
  const { user } = await createTenant(forge, "neighbour");
  const bare = await bareServer();
  const worst = { forge: 0, bare: 0 };
  let isOver = false;
  const watch = async (whose: keyof typeof worst, ask: () => Promise<unknown>): Promise<void> => {
    while (!isOver) {
      worst[whose] = Math.max(worst[whose], await taken(ask));
      await sleep(20);
    }
  };
  const watching = Promise.all([
    watch("forge", () => user.get("/api/jobs?limit=1")),
    watch("bare", async () => await (await fetch(bare.url)).text()),
  ]);
  try {
    await work();
  } finally {
    isOver = true;
    await watching;
    bare.end();
  }
  return worst.forge - worst.bare;
}

const server = (): { pid: number; peakMb: number } => {
  const pid = forge.stack.server?.pid ?? 0;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return { pid, peakMb: Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024 };
};

/** Generated before the measurement, because generating them keeps this process busy. */
const FILES = HOSTILE_FILES.map(({ format, bytes }) => ({ format, bytes: bytes() }));

test("files built to harm stop no server, and delay no other tenant's request", async () => {
  const before = server();
  const statuses: number[] = [];
  const worst = await worstWaitDuring(async () => {
    for (const { format, bytes } of FILES) {
      const key = forge.stack.keys.userKey;
      statuses.push(
        (await send("POST", "/api/datasets", key, CONTENT_TYPES[format], bytes)).status,
      );
    }
  });
  // The CSV file whose cell has many digits and an x is accepted (201): it is a valid table, and
  // only slow to match with a pattern.
  expect(new Set(statuses)).toEqual(new Set([400, 201]));
  expect(worst).toBeLessThan(1_000);
  const after = server();
  expect(after.pid).toBe(before.pid);
  expect(after.peakMb - before.peakMb).toBeLessThan(200);
});

test("a job that uploads such files completes, and its manifest says that they were not read", async () => {
  const worker = await forge.worker("w");
  const before = server();
  // Jobs use the same reader as uploads. One file of each of two formats is enough to show that.
  const hostile = ["parquet", "jsonl"].flatMap((kind) =>
    FILES.filter(({ format }) => format === kind).slice(0, 1),
  );
  const worst = await worstWaitDuring(async () => {
    for (const { format, bytes } of hostile) {
      const { job_id } = await forge.user.submit("audit", { dataset_uri: "s3://b/d.parquet" });
      const job = await worker.take();
      const query = `worker_id=${worker.id}&attempt=${job.attempt}`;
      const path = `/worker/jobs/${job_id}/artifacts/scored.${format}?${query}`;
      const key = forge.stack.keys.workerKey;
      const sent = await send("PUT", path, key, "application/octet-stream", bytes);
      expect(sent.status).toBe(201);
      await worker.complete(job, { result: { num_rows: 7 } });
      const { status, result } = await untilEnded(forge.user, job_id);
      expect(status).toBe("completed");
      const manifest = await forge.user.get(`/api/artifacts/${result?.dataset_id}/manifest`);
      expect(manifest).toMatchObject({
        verified: false,
        measured: ["files", "cost_estimate_usd"],
        num_rows: 7,
        contradictions: [
          { field: `files.scored.${format}`, claimed: "a table", measured: expect.any(String) },
        ],
      });
    }
  });
  expect(worst).toBeLessThan(1_000);
  expect(server().pid).toBe(before.pid);
  await forge.endTest();
});
