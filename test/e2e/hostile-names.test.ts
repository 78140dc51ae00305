/** Path-traversal names at every place that takes a name. */

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import fc from "fast-check";
import { isPlainPath } from "../../core/artifacts/plain-path";
import { waitFor } from "../../dev/stack/wait";
import { artifactOf, download } from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;
let job: DispatchedJob;

/** Number of names for each of `forFiles`, `forCheckpoints`, `forDownloads` and `forIds`. */
const NAMES = process.env.TEST_SLOW ? 2_600 : 100;

beforeAll(async () => {
  forge = await startForge({
    FORGE_RATE_LIMIT_PER_MINUTE: "1000000",
    FORGE_RATE_LIMIT_BURST: "100000",
  });
  worker = await forge.worker("w");
  worker.startHeartbeats(2_000);
  await forge.user.submit("audit", AUDIT);
  job = await worker.take();
  // Files that a path traversal must not reach: one next to the store, and one of another artifact.
  writeFileSync(join(forge.stack.storeDir, "..", "secret.txt"), "secret");
  mkdirSync(join(forge.stack.storeDir, "artifacts", "datasets", "ds_other"), { recursive: true });
  writeFileSync(join(forge.stack.storeDir, "artifacts", "datasets", "ds_other", "raw.jsonl"), "{}");
});

afterAll(async () => {
  worker?.stopHeartbeats();
  try {
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

const DOTS = [
  "..",
  "%2e%2e",
  "%2E.",
  ".%2e",
  "%252e%252e",
  "．．",
  "..;",
  "...",
  ".",
  "%c0%ae%c0%ae",
  "",
];
const SLASHES = ["/", "%2f", "%2F", "\\", "%5c", "%252f", "//", "∕", "%c0%af", "/./"];
const ENDS = [
  "secret.txt",
  "etc/passwd",
  "raw.jsonl",
  "manifest.json",
  "MANIFEST.JSON",
  "manifest.json%00.txt",
  "a%00b",
  "x%0d%0aSet-Cookie: a=b",
  "%1b[2J",
  "C:%5cwindows",
  "C:x",
  "~root",
  "$(id)",
  ";id",
  "NUL",
  "a".repeat(256),
  "é".repeat(200),
  "%ff%fe",
  "%",
  "%zz",
  ".0b6f1c1e-1111-4222-8333-abcdefabcdef.part",
];

/**
 * A hostile name, as it stands in the request path. `raw` sends the name unchanged, except that it
 * encodes spaces, control characters and non-ASCII characters.
 */
const hostileName = fc.oneof(
  fc
    .tuple(
      fc.array(fc.tuple(fc.constantFrom(...DOTS), fc.constantFrom(...SLASHES)), { maxLength: 8 }),
      fc.constantFrom(...ENDS),
      fc.array(fc.constantFrom("a", "b/", "/"), { maxLength: 2 }),
    )
    .map(([climb, end, start]) => [...start, ...climb.flat(), end].join("")),
  fc.constantFrom("/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd", "file:///etc/passwd"),
  fc.string({ unit: "binary", minLength: 1, maxLength: 40 }).map((text) => encodeURI(text)),
  fc
    .array(
      fc.constantFrom("a", "%41", "/", ".", "%2e", "%2f", "..", "%00", "\\", ":", " ", "%20"),
      {
        minLength: 1,
        maxLength: 12,
      },
    )
    .map((parts) => parts.join("")),
);

/** Sends a request with `node:http`, because `fetch` would normalise the dots in the path. */
function raw(
  method: string,
  path: string,
  key: string,
  body?: string,
): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(forge.stack.apiUrl);
  // A request path may contain only printable ASCII characters and no spaces. Escape all others.
  const line = path.replace(/[^\x21-\x7e]/g, encodeURIComponent);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        hostname,
        port,
        method,
        path: line,
        headers: {
          "x-service-api-key": key,
          ...(body === undefined ? {} : { "content-type": "application/octet-stream" }),
        },
      },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (chunk) => {
          text += chunk;
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: text }));
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();

const names = [...new Set(fc.sample(hostileName, { numRuns: 12 * NAMES, seed: 7 }))];
const [forFiles = [], forCheckpoints = [], forDownloads = [], forIds = []] = [0, 1, 2, 3].map((n) =>
  names.slice(n * NAMES, (n + 1) * NAMES),
);

async function eachOf<T>(items: T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let item = queue.pop(); item !== undefined; item = queue.pop()) await work(item);
    }),
  );
}

test("an upload stays in its own folder, or is refused", async () => {
  const query = `worker_id=${worker.id}&attempt=${job.attempt}`;
  const own = join(
    forge.stack.storeDir,
    "artifacts",
    "datasets",
    String(job.output_ids.dataset_id),
  );
  const before = filesIn(join(forge.stack.storeDir, ".."));
  const seen = new Map<number, number>();
  const send = async (folder: string, name: string): Promise<void> => {
    const path = `/worker/jobs/${job.job_id}/${folder}/${name}?${query}`;
    const { status, body } = await raw("PUT", path, forge.stack.keys.workerKey, "x");
    seen.set(status, (seen.get(status) ?? 0) + 1);
    if ([201, 400, 404, 405, 409, 414].includes(status)) return;
    throw new Error(`${name}: ${status} ${body}`);
  };
  expect(forIds).toHaveLength(NAMES);
  await eachOf(forFiles, (name) => send("artifacts", name));
  await eachOf(forCheckpoints, (name) => send("checkpoints", name));
  // The mix of names must be useful: enough are harmless (201), and enough are refused (400).
  expect(seen.get(201)).toBeGreaterThan(NAMES / 26);
  expect(seen.get(400)).toBeGreaterThan(NAMES / 2.6);
  const after = filesIn(join(forge.stack.storeDir, ".."));
  const isExpected = (file: string): boolean =>
    before.includes(file) ||
    file.startsWith(`${own}/`) ||
    file.startsWith(join(forge.stack.storeDir, "runs", job.job_id)) ||
    // The stack itself also writes files outside the store. A separate check below covers these.
    !file.startsWith(`${forge.stack.storeDir}/`);
  expect(after.filter((file) => !isExpected(file))).toEqual([]);
  const outside = after.filter(
    (file) => !before.includes(file) && !file.startsWith(`${forge.stack.storeDir}/`),
  );
  expect(outside.filter((file) => !/\/(postgres|temporal|.*\.log)/.test(file))).toEqual([]);
}, 120_000);

test("accepted uploads are in the manifest and in the archive, with plain names only", async () => {
  await worker.complete(job, { artifacts_uri: null });
  expect(await untilEnded(forge.user, job.job_id, 60_000)).toMatchObject({ status: "completed" });
  const artifact = await artifactOf(forge.user, job.job_id);
  const paths = artifact.manifest.files.map(({ path }) => path);
  expect(paths.length).toBeGreaterThan(20);
  expect(paths.filter((path) => !isPlainPath(path))).toEqual([]);
  expect(artifact.manifest.files.every(({ size_bytes: size }) => size === 1)).toBe(true);
  const { bytes } = await download(forge.user, `/api/artifacts/${artifact.artifact_id}/archive`);
  const listed = execFileSync("tar", ["-tf", "-"], { input: bytes }).toString().trim().split("\n");
  expect(listed).toHaveLength(paths.length + 1);
  for (const name of listed) {
    expect(name.startsWith(`${artifact.artifact_id}/`)).toBe(true);
    expect(name.split("/")).not.toContain("..");
  }
}, 60_000);

test("a download returns one of the files, or is refused", async () => {
  const artifact = await artifactOf(forge.user, job.job_id);
  const paths = new Set(artifact.manifest.files.map(({ path }) => path));
  const id = artifact.artifact_id;
  const asked = [
    ...[...forDownloads, ...forFiles.slice(0, 500)].map(
      (name) => `/api/artifacts/${id}/files/${name}`,
    ),
    ...forIds.map((name) => `/api/artifacts/${name}/manifest`),
  ];
  let found = 0;
  await eachOf(asked, async (path) => {
    const { status, body } = await raw("GET", path, forge.stack.keys.userKey);
    if (![200, 400, 404, 414].includes(status)) throw new Error(`${path}: ${status} ${body}`);
    if (body.includes("secret") && !body.includes("error")) throw new Error(`${path}: ${body}`);
    if (status !== 200 || path.includes("/manifest")) return;
    const name = decodeURIComponent(path.split("/files/")[1] ?? "");
    if (name === "" || name === "manifest.json") return;
    expect(paths.has(name.replace(/\/$/, "")) || paths.has(name)).toBe(true);
    found += 1;
  });
  // The accepted files can be downloaded.
  expect(found).toBeGreaterThan(10);
}, 120_000);

test("a dataset_uri resolves to nothing of another tenant", async () => {
  let accepted = 0;
  await eachOf(names.slice(0, 200), async (name) => {
    for (const start of [
      "forge://artifacts/datasets/",
      `file://${forge.stack.storeDir}/artifacts/`,
    ]) {
      const uri = `${start}${name}`;
      const answer = await forge.user.call("POST", "/api/jobs/audit", { dataset_uri: uri });
      if (answer.status === 201) accepted += 1;
      else expect(answer).toMatchObject({ status: 400, body: { error: { param: "dataset_uri" } } });
    }
  });
  interface Dispatched extends DispatchedJob {
    inputs: { value: string; files?: { path: string }[] }[];
  }
  expect(accepted).toBeGreaterThan(20);
  for (; accepted > 0; accepted--) {
    const dispatched = (await worker.take()) as Dispatched;
    for (const { value, files } of dispatched.inputs) {
      if (files) throw new Error(`${value} leads to ${JSON.stringify(files)}`);
    }
    await worker.fail(dispatched);
  }
  await waitFor("all of them to have ended", async () => {
    const { jobs } = await forge.user.get<{ jobs: [] }>("/api/jobs?status=pending&status=running");
    return jobs.length === 0;
  });
}, 180_000);
