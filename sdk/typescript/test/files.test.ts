import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { IntegrityError, type Progress, UnsafePathError } from "../src/index.ts";
import { FakeForge, json, manifestOf, refusal } from "./fake-forge.ts";
import { pauses } from "./pauses.ts";

jest.mock("../src/pause.ts", () => jest.requireActual("./pauses.ts"));

let server: FakeForge;
let folder: string;

beforeEach(async () => {
  pauses.length = 0;
  server = await new FakeForge().start();
  folder = mkdtempSync(join(tmpdir(), "forge-sdk-"));
});

afterEach(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const DATASET = { dataset_id: "ds_2", dataset_uri: "forge://artifacts/datasets/ds_2/" };
const RAW = (): Buffer => server.files["raw.jsonl"] as Buffer;

test("an upload has name, length and checksum, and is read again for each try", async () => {
  const content = Buffer.from("a,b\n1,2\n".repeat(50_000));
  writeFileSync(join(folder, "my data.csv"), content);
  server.play("cut", refusal(503, "down"), json(DATASET, 201));
  const told: Progress[] = [];
  const dataset = await server.client().datasets.upload(join(folder, "my data.csv"), null, {
    onProgress: (each) => told.push(each),
  });
  expect(dataset.dataset_id).toBe("ds_2");
  for (const { path, headers, body } of server.asked) {
    expect(path).toBe("/api/datasets?name=my+data");
    expect(headers).toMatchObject({
      "content-type": "text/csv",
      "content-length": String(content.length),
      "x-checksum-sha256": createHash("sha256").update(content).digest("hex"),
      "idempotency-key": server.asked[0]?.headers["idempotency-key"],
    });
    expect(body.equals(content)).toBe(true);
  }
  expect(server.asked).toHaveLength(3);
  const total_bytes = content.length;
  expect(told.at(-1)).toEqual({ path: "my data", done_bytes: total_bytes, total_bytes });
});

test("content may be bytes, a Blob, a File or a stream", async () => {
  server.script = () => json(DATASET, 201);
  const { datasets } = server.client();
  const bytes = new TextEncoder().encode('{"a": 1}\n');
  await datasets.upload(bytes, "bytes", { format: "jsonl" });
  await datasets.upload(new Blob([bytes]), "blob", { format: "jsonl" });
  await datasets.upload(new Blob([bytes]).stream(), "stream", { format: "jsonl" });
  await datasets.upload(new File([bytes], "file.jsonl"));
  expect(server.asked.map(({ path }) => path.split("=")[1])).toEqual([
    "bytes",
    "blob",
    "stream",
    "file",
  ]);
  for (const { body } of server.asked) expect(String(body)).toBe('{"a": 1}\n');
  await expect(datasets.upload(bytes)).rejects.toThrow(
    'format must be jsonl, csv or parquet, not ""',
  );
  await expect(datasets.upload(join(folder, "none.csv"))).rejects.toThrow("none.csv");
});

test.each([true, false])(
  "an interrupted download resumes (server with support for Range: %s)",
  async (knows) => {
    server.knowsRange = knows;
    let cuts = 0;
    server.script = ({ path, headers }) => {
      if (!path.endsWith("/raw.jsonl") || cuts === 3) return undefined;
      cuts += 1;
      const start = knows ? Number(/\d+/.exec(headers.range ?? "")?.[0] ?? 0) : 0;
      const body = RAW().subarray(start);
      const span = { "Content-Range": `bytes ${start}-${RAW().length - 1}/${RAW().length}` };
      return { status: start ? 206 : 200, body, headers: start ? span : {}, cutAfter: 1000 * cuts };
    };
    const told: Progress[] = [];
    const target = join(folder, "raw");
    const onProgress = (each: Progress) => told.push(each);
    await server.client().artifacts.download("ds_1", "raw.jsonl", target, { onProgress });
    expect(readFileSync(target).equals(RAW())).toBe(true);
    expect(told.at(-1)?.done_bytes).toBe(RAW().length);
    expect(server.asked).toHaveLength(5);
  },
);

test("bytes that do not match the manifest are discarded", async () => {
  const wrong = Buffer.from(RAW());
  wrong[5] = (wrong[5] ?? 0) ^ 1;
  const { artifacts } = server.client();
  for (const body of [wrong, RAW().subarray(1), Buffer.concat([RAW(), RAW()])]) {
    server.script = ({ path }) => (path.endsWith("/raw.jsonl") ? { body } : undefined);
    const target = join(folder, "raw");
    const download = artifacts.download("ds_1", "raw.jsonl", target);
    await expect(download).rejects.toBeInstanceOf(IntegrityError);
    expect(readdirSync(folder)).toEqual([]);
    expect((await artifacts.verify("ds_1")).ok).toBe(false);
  }
  await expect(artifacts.download("ds_1", "other", join(folder, "x"))).rejects.toThrow(
    'the manifest of ds_1 has no file "other"',
  );
});

test("pull downloads missing files, and verify finds changes", async () => {
  const { artifacts } = server.client();
  const told: Progress[] = [];
  const pulled = await artifacts.pull("ds_1", folder, { onProgress: (each) => told.push(each) });
  expect(pulled).toMatchObject({ fetched: ["raw.jsonl", "deep/er/b"], kept: [], verified: true });
  expect(told.at(-1)).toEqual({ path: "deep/er/b", done_bytes: 9003, total_bytes: 9003 });
  expect((await artifacts.verifyLocal("ds_1", folder)).ok).toBe(true);
  expect((await artifacts.verify("ds_1")).ok).toBe(true);
  writeFileSync(join(folder, "deep/er/b"), "owt");
  writeFileSync(join(folder, "more"), "");
  const found = await artifacts.verifyLocal("ds_1", folder);
  expect(found.ok).toBe(false);
  expect(found.files.map(({ path, outcome }) => [path, outcome])).toEqual([
    ["raw.jsonl", "ok"],
    ["deep/er/b", "changed"],
    ["manifest.json", "ok"],
    ["more", "extra"],
  ]);
  expect(await artifacts.pull("ds_1", folder)).toMatchObject({ fetched: ["deep/er/b"] });
  expect(readFileSync(join(folder, "deep/er/b"), "utf8")).toBe("two");
  await expect(artifacts.verifyLocal("ds_1", join(folder, "none"))).rejects.toThrow(
    "not a directory",
  );
});

test.each([
  "../out",
  "/abs",
  "a//b",
  "a/../../b",
  "a\\b",
  "C:/x",
  ".. /x",
  "nul\0",
  "manifest.json",
  "Raw.jsonl",
])("a manifest that names %j writes nothing", async (path) => {
  server.files = { "raw.jsonl": RAW(), [path]: Buffer.from("x") };
  server.manifest = manifestOf(server.files);
  const inner = join(folder, "inner");
  const pull = server.client().artifacts.pull("ds_1", inner);
  await expect(pull).rejects.toBeInstanceOf(UnsafePathError);
  expect(existsSync(inner)).toBe(false);
});

test("two concurrent pulls create the same folders", async () => {
  server.files = { "a/b/c/d/e": Buffer.from("deep") };
  server.manifest = manifestOf(server.files);
  const { artifacts } = server.client();
  const pulls = Array.from({ length: 8 }, () => artifacts.pull("ds_1", join(folder, "inner")));
  expect(await Promise.all(pulls)).toHaveLength(8);
  expect((await artifacts.verifyLocal("ds_1", join(folder, "inner"))).ok).toBe(true);
});

test("a file or a dangling link in place of a folder is refused", async () => {
  const { artifacts } = server.client();
  writeFileSync(join(folder, "deep"), "a file");
  await expect(artifacts.pull("ds_1", folder)).rejects.toBeInstanceOf(UnsafePathError);
  rmSync(join(folder, "deep"));
  symlinkSync(join(folder, "nowhere"), join(folder, "deep"));
  await expect(artifacts.pull("ds_1", folder)).rejects.toBeInstanceOf(UnsafePathError);
  expect(existsSync(join(folder, "nowhere"))).toBe(false);
});

test("links are not followed for writing", async () => {
  mkdirSync(join(folder, "outside"));
  const inner = join(folder, "inner");
  mkdirSync(inner);
  symlinkSync(join(folder, "outside"), join(inner, "deep"));
  const { artifacts } = server.client();
  await expect(artifacts.pull("ds_1", inner)).rejects.toBeInstanceOf(UnsafePathError);
  expect(readdirSync(join(folder, "outside"))).toEqual([]);
  rmSync(join(inner, "deep"));
  rmSync(join(inner, "raw.jsonl"));
  writeFileSync(join(folder, "outside", "kept"), "kept");
  symlinkSync(join(folder, "outside", "kept"), join(inner, "raw.jsonl"));
  await expect(artifacts.pull("ds_1", inner)).rejects.toBeInstanceOf(UnsafePathError);
  expect(readFileSync(join(folder, "outside", "kept"), "utf8")).toBe("kept");
});
