import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { checkoutRoot } from "../../dev/stack/paths";
import { CONTENT_TYPES } from "../support/content-types";
import type { Delay } from "../support/delay-watcher";
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

/**
 * Runs `work`. Meanwhile, sends another tenant's requests to Forge, and requests to a bare server
 * at the same times. Throws if a request to Forge takes over a second longer than the one to the
 * bare server.
 */
async function expectNoDelayDuring(work: () => Promise<unknown>): Promise<void> {
  const { user } = await createTenant(forge, "neighbour");
  const bare = await bareServer();
  const program = join(checkoutRoot(), "dist/test/support/delay-watcher.js");
  const watcher = spawn(process.execPath, [program, forge.stack.apiUrl, user.key, bare.url], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    await once(watcher.stdout, "data");
    await work();
    watcher.stdin.end();
    const longest = JSON.parse(await text(watcher.stdout)) as Delay;
    if (longest.forgeMs - longest.bareMs > 1_000) {
      throw new Error(`a request was delayed: ${JSON.stringify(longest)}`);
    }
  } finally {
    watcher.kill("SIGKILL");
    bare.end();
  }
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
  await expectNoDelayDuring(async () => {
    for (const { format, bytes } of FILES) {
      const key = forge.stack.keys.userKey;
      statuses.push(
        (await send("POST", "/api/datasets", key, CONTENT_TYPES[format], bytes)).status,
      );
    }
  });
  // Only one file is accepted (201): a CSV file with a cell of many digits and an x. It is a valid
  // table, but matching the cell with a regular expression may take very long.
  expect(new Set(statuses)).toEqual(new Set([400, 201]));
  const after = server();
  expect(after.pid).toBe(before.pid);
  expect(after.peakMb - before.peakMb).toBeLessThan(200);
});

test("a job that uploads such files completes, and its manifest says that they were not read", async () => {
  const worker = await forge.worker("w");
  const before = server();
  // Jobs use the same reader as uploads, so one Parquet file and one JSONL file are enough here.
  const hostile = ["parquet", "jsonl"].flatMap((kind) =>
    FILES.filter(({ format }) => format === kind).slice(0, 1),
  );
  await expectNoDelayDuring(async () => {
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
  expect(server().pid).toBe(before.pid);
  await forge.endTest();
});
