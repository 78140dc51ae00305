import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { parquetOf, varint } from "../support/parquet-bytes";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_REQUEST_TIMEOUT_S: "2" }, { own: ["server"] });
});

afterAll(async () => {
  await forge?.stop();
});

interface Dataset {
  dataset_id: string;
  dataset_uri: string;
  artifact_id: string;
  num_rows: number;
  schema: { columns: { name: string; dtype: string }[] };
  size_bytes: number;
  manifest: Record<string, unknown>;
}

async function upload(
  body: Buffer | string,
  type: string,
  { query = "", headers = {} }: { query?: string; headers?: Record<string, string> } = {},
) {
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets${query}`, {
    method: "POST",
    headers: { "x-service-api-key": forge.stack.keys.userKey, "content-type": type, ...headers },
    body,
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Dataset,
  };
}

/**
 * Returns a parquet file that consists of a footer only. The footer's schema has one element for
 * each number in `children`, and each element claims to have that many child elements.
 */
function claiming(children: number[]): Buffer {
  const zigzag = (value: number): number => (value >= 0 ? value * 2 : -value * 2 - 1);
  const element = (count: number): number[] => [0x48, 1, 0x61, 0x15, ...varint(zigzag(count)), 0];
  return parquetOf(
    Buffer.from([
      ...[0x15, 2, 0x19, (children.length << 4) | 0x0c],
      ...children.flatMap(element),
      ...[0x16, 2, 0x19, 0x0c, 0],
    ]),
  );
}

const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");

const folders = (): string[] => {
  const root = join(forge.stack.storeDir, "artifacts/datasets");
  return existsSync(root) ? readdirSync(root) : [];
};

test("an uploaded file becomes a measured dataset that a job may name", async () => {
  const text = 'question,score\n"why, then?",1.5\nhow?,2\n';
  const { status, body } = await upload(text, "text/csv; charset=utf-8", {
    query: "?name=questions",
    headers: { "x-checksum-sha256": sha256(text).toUpperCase() },
  });
  expect(status).toBe(201);
  expect(body).toMatchObject({
    artifact_type: "dataset",
    kind: "raw_dataset",
    name: "questions",
    num_rows: 2,
    size_bytes: text.length,
    source_jobs: [],
    schema: {
      columns: [
        { name: "question", dtype: "string" },
        { name: "score", dtype: "double" },
      ],
    },
  });
  const { files } = await forge.user.get<{ files: unknown }>(
    `/api/artifacts/${body.dataset_id}/files`,
  );
  expect(files).toEqual([{ path: "raw.csv", size_bytes: text.length, sha256: sha256(text) }]);
  const file = await fetch(`${forge.stack.apiUrl}/api/artifacts/${body.dataset_id}/files/raw.csv`, {
    headers: { "x-service-api-key": forge.stack.keys.userKey },
  });
  expect(await file.text()).toBe(text);
  const folder = join(forge.stack.storeDir, "artifacts/datasets", body.dataset_id);
  expect(JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"))).toEqual(body.manifest);

  const job = await forge.user.post<{ job_id: string }>("/train", {
    dataset_id: body.dataset_id,
    model: "m",
  });
  expect(job).not.toHaveProperty("warnings");
  const worker = await forge.worker("w", { name: "A100", memory_gb: 80 });
  await worker.complete(await worker.take());
  await untilEnded(forge.user, job.job_id);
  await forge.endTest();
});

test("parquet is measured by its footer", async () => {
  const parquet = readFileSync(join(__dirname, "questions.parquet"));
  const { status, body } = await upload(parquet, "application/vnd.apache.parquet");
  expect([status, body.num_rows]).toEqual([201, 2]);
  expect(body.schema.columns).toEqual([
    { name: "question", dtype: "string" },
    { name: "n", dtype: "int64" },
    { name: "score", dtype: "double" },
    { name: "answers", dtype: "list" },
    { name: "meta", dtype: "struct" },
    { name: "at", dtype: "timestamp" },
  ]);
});

test("a file larger than any JSON body is accepted, and not held in memory", async () => {
  const row = `{"text":"${"x".repeat(1000)}"}\n`;
  const rows = 60_000;
  async function* body(): AsyncGenerator<Buffer> {
    const many = Buffer.from(row.repeat(1000));
    for (let n = 0; n < rows / 1000; n++) yield many;
  }
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: {
      "x-service-api-key": forge.stack.keys.userKey,
      "content-type": "application/x-ndjson",
    },
    body: body() as unknown as ReadableStream,
    duplex: "half",
  } as RequestInit);
  expect(await response.json()).toMatchObject({ num_rows: rows, size_bytes: row.length * rows });
});

test.each([
  ["text/csv", "a,b\n1,2\n3\n", /^row 3 /],
  ["text/csv", "a\n", /no rows/],
  ["application/x-ndjson", '{"a":1}\n{"a":', /^row 2 /],
  ["application/vnd.apache.parquet", "PAR1 nothing of the kind PAR1", /parquet/],
])("%s %j is refused, and stores nothing", async (type, text, says) => {
  const before = folders();
  const { status, body } = await upload(text, type);
  expect([status, body]).toEqual([
    400,
    { error: expect.objectContaining({ param: "body", message: expect.stringMatching(says) }) },
  ]);
  expect(folders()).toEqual(before);
});

test.each([
  ["two thousand million children", [2_147_483_647]],
  ["a tower of children", Array(14).fill(1)],
  ["fewer than no children", [1, -5]],
])("parquet that claims %s is refused at once", async (_what, children) => {
  const began = performance.now();
  const answer = await upload(claiming(children), "application/vnd.apache.parquet");
  expect(answer.status).toBe(400);
  expect(performance.now() - began).toBeLessThan(5_000);
});

test("an upload that stops half-way leaves no open file and no stored file", async () => {
  const { hostname, port } = new URL(forge.stack.apiUrl);
  const partsOpen = (): string[] =>
    readdirSync(`/proc/${forge.stack.server?.pid}/fd`).flatMap((fd) => {
      try {
        const target = readlinkSync(`/proc/${forge.stack.server?.pid}/fd/${fd}`);
        return target.endsWith(".part") ? [target] : [];
      } catch {
        return []; // The file has been closed.
      }
    });
  const before = folders();
  const sockets = Array.from({ length: 5 }, () => {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined);
    socket.resume();
    socket.write(
      `POST /api/datasets HTTP/1.1\r\nHost: x\r\nX-Service-Api-Key: ${forge.stack.keys.userKey}\r\n` +
        "Content-Type: text/csv\r\nContent-Length: 1000\r\n\r\na,b\n",
    );
    return socket;
  });
  const closed = Promise.all(sockets.map((socket) => new Promise((r) => socket.once("close", r))));
  await waitFor("the files to be open", () => partsOpen().length === 5);
  await closed;
  await waitFor("the files to be closed", () => partsOpen().length === 0);
  await waitFor("the folders to be gone", () => folders().length === before.length);
});

test("bytes that don't match the checksum are refused and not stored", async () => {
  const before = folders();
  const headers = { "x-checksum-sha256": sha256("something else") };
  expect(await upload("a\n1\n", "text/csv", { headers })).toMatchObject({
    status: 400,
    body: { error: { code: "checksum_mismatch", param: "X-Checksum-Sha256" } },
  });
  expect(folders()).toEqual(before);
});

test("a repeated upload is one dataset", async () => {
  const headers = { "idempotency-key": "upload-once" };
  const first = await upload("a\n1\n", "text/csv", { headers });
  const before = folders();
  const again = await upload("a\n1\n", "text/csv", { headers });
  expect(again.body).toEqual(first.body);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect((await upload("a\n2\n", "text/csv", { headers })).status).toBe(422);
  expect(folders()).toEqual(before);
});
