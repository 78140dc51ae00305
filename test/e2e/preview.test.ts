import { createHash } from "node:crypto";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DuckDBInstance } from "@duckdb/node-api";
import type { Answer } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import type { TableFormat } from "../../platform/tables/table-format";
import { CONTENT_TYPES } from "../support/content-types";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { slowTest } from "../support/slow";
import { createTenant } from "../support/tenants";

const TIMEOUT_S = 4;
let forge: Forge;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "forge-preview-"));
  forge = await startForge({ FORGE_PREVIEW_TIMEOUT_S: String(TIMEOUT_S) }, { own: ["server"] });
});

afterAll(async () => {
  await forge?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Column {
  name: string;
  dtype: string;
  null_count: number;
  min: unknown;
  max: unknown;
  mean: number | null;
  stddev: number | null;
  approx_distinct: number | null;
}

interface Preview {
  artifact_id: string;
  path: string;
  num_rows: number;
  columns: Column[];
  rows: Record<string, unknown>[];
  truncated: boolean;
  error?: { code: string; message: string };
}

/** Uploads a dataset. @returns its id. */
async function upload(body: Buffer | string, format: TableFormat): Promise<string> {
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: {
      "x-service-api-key": forge.stack.keys.userKey,
      "content-type": CONTENT_TYPES[format],
    },
    body,
  });
  const { dataset_id } = (await response.json()) as { dataset_id: string };
  expect([response.status, dataset_id]).toEqual([201, expect.any(String)]);
  return dataset_id;
}

const preview = (id: string, path?: string): Promise<Answer<Preview>> => {
  const query = path === undefined ? "" : `?path=${encodeURIComponent(path)}`;
  return forge.user.call<Preview>("GET", `/api/artifacts/${id}/preview${query}`);
};

/** A parquet file with the rows of a SELECT. */
async function parquet(name: string, select: string): Promise<string> {
  const path = join(folder, name);
  const instance = await DuckDBInstance.create(":memory:", { threads: "2" });
  const connection = await instance.connect();
  await connection.run(`copy (${select}) to '${path}' (format parquet)`);
  connection.closeSync();
  instance.closeSync();
  return path;
}

/**
 * Returns the id of a reader process.
 *
 * @throws Error if there is no reader process. The function must not return 0 in this case, because
 *   `process.kill(0)` would send the signal to jest.
 */
function readerPid(): number {
  const [pid] = enginePids();
  if (pid === undefined) throw new Error("there is no reader process");
  return pid;
}

/** The server's processes that read tables. */
function enginePids(): number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      const parent = readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]?.split(" ")[1];
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8");
      const isEngine = Number(parent) === forge.stack.server?.pid;
      return isEngine && command.includes("engine-process") ? [Number(name)] : [];
    } catch {
      return []; // The process has ended, or `name` is not a process id.
    }
  });
}

/**
 * CPU time that the reader processes have used so far, in ms. The kernel counts in hundredths of a
 * second.
 */
const cpuMs = (): number =>
  enginePids()
    .map((pid) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [])
    .reduce((sum, fields) => sum + (Number(fields[11]) + Number(fields[12])) * 10, 0);

const peakMb = (pid: number): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** The expected statistics, computed without Forge's code. */
function statisticsOf(values: (number | null)[]) {
  const known = values.filter((value) => value !== null);
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const squares = known.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    null_count: values.length - known.length,
    min: Math.min(...known),
    max: Math.max(...known),
    mean: expect.closeTo(mean, 9),
    stddev: expect.closeTo(Math.sqrt(squares / (known.length - 1)), 9),
  };
}

const ROWS = Array.from({ length: 1_000 }, (_, n) => ({
  id: n,
  score: n % 7 === 0 ? null : Math.sin(n) * 100,
  text: `row "${n}", é`,
  ok: n % 3 === 0,
}));

const CSV = `id,score,text,ok\n${ROWS.map(
  ({ id, score, text, ok }) => `${id},${score ?? ""},"${text.replaceAll('"', '""')}",${ok}\n`,
).join("")}`;
const JSONL = ROWS.map((row) => `${JSON.stringify(row)}\n`).join("");

test.each(["csv", "jsonl", "parquet"] as const)(
  "%s: the first rows, and statistics of all",
  async (format) => {
    let body: Buffer | string = format === "csv" ? CSV : JSONL;
    if (format === "parquet") {
      writeFileSync(join(folder, "rows.jsonl"), JSONL);
      body = readFileSync(await parquet("rows.parquet", `select * from '${folder}/rows.jsonl'`));
    }
    const id = await upload(body, format);
    const { status, body: answer } = await preview(id);
    expect([status, answer]).toMatchObject([
      200,
      {
        artifact_id: id,
        path: `raw.${format}`,
        num_rows: 1_000,
        rows: ROWS.slice(0, 50),
        truncated: false,
      },
    ]);
    const names = ["id", "score", "text", "ok"];
    const dtypes = ["int64", "double", "string", "bool"];
    expect(answer.columns.map(({ name }) => name)).toEqual(names);
    expect(answer.columns.map(({ dtype }) => dtype)).toEqual(dtypes);
    const [first, score, text, ok] = answer.columns;
    expect(first).toMatchObject(statisticsOf(ROWS.map((row) => row.id)));
    expect(score).toMatchObject(statisticsOf(ROWS.map((row) => row.score)));
    const lengths = ROWS.map((row) => row.text.length);
    expect(text).toMatchObject({
      null_count: 0,
      min: ROWS[0]?.text,
      max: 'row "999", é',
      min_length: Math.min(...lengths),
      max_length: Math.max(...lengths),
      mean_length: lengths.reduce((sum, length) => sum + length, 0) / lengths.length,
    });
    expect(ok).toMatchObject({ min: false, max: true, mean: 0.334, approx_distinct: 2 });
    expect(Math.abs((first?.approx_distinct ?? 0) - 1_000)).toBeLessThan(300);
  },
);

slowTest("a million rows take at most one second on two cores, and 200 MB", async () => {
  const path = await parquet(
    "million.parquet",
    `select i as id, sin(i) * 1000 as score, md5(i::varchar)[:30] as text, i % 3 = 0 as ok,
       timestamp '2024-01-01' + to_seconds(i) as at, case when i % 7 <> 0 then i % 1000 end as n
     from range(1000000) t(i)`,
  );
  const file = readFileSync(path);
  const [cold, warm] = [await upload(file, "parquet"), await upload(file, "parquet")];
  const timed = async (id: string) => {
    const [began, spent] = [performance.now(), cpuMs()];
    const answer = await preview(id);
    expect(answer.status).toBe(200);
    return { ms: performance.now() - began, cpuMs: cpuMs() - spent, body: answer.body };
  };
  const first = await timed(cold);
  const second = await timed(warm);
  const cached = await timed(warm);
  const pid = readerPid();
  const peak = peakMb(pid);
  process.stderr.write(
    `a million rows: ${Math.round(first.ms)} ms, warm ${Math.round(second.ms)} ms ` +
      `(${second.cpuMs} ms of CPU), cached ${Math.round(cached.ms)} ms; peak ${Math.round(peak)} MB\n`,
  );
  const columns = Object.fromEntries(second.body.columns.map((column) => [column.name, column]));
  expect(second.body.num_rows).toBe(1_000_000);
  expect(columns.id).toMatchObject({ null_count: 0, min: 0, max: 999_999, mean: 499_999.5 });
  expect(columns.n).toMatchObject({ null_count: Math.ceil(1_000_000 / 7), min: 0, max: 999 });
  expect(columns.at).toMatchObject({
    dtype: "timestamp",
    min: "2024-01-01T00:00:00",
    max: "2024-01-12T13:46:39",
  });
  expect(second.body.rows[0]?.text).toBe(createHash("md5").update("0").digest("hex").slice(0, 30));
  expect(cached.body).toEqual(second.body);
  expect(cached.body.rows).toEqual(first.body.rows);
  // Check the CPU time instead of the elapsed time, which depends on other load.
  expect(second.cpuMs).toBeLessThan(2_000);
  expect(cached.cpuMs).toBeLessThan(100);
  expect(peak).toBeLessThan(200);
});

describe("without a preview", () => {
  test("another tenant's artifact is not found", async () => {
    const id = await upload("a\n1\n", "csv");
    const { user } = await createTenant(forge, "other");
    const foreign = await user.call("GET", `/api/artifacts/${id}/preview`);
    const none = await user.call("GET", "/api/artifacts/ds_none/preview");
    for (const { status, body } of [foreign, none]) {
      expect([status, body]).toMatchObject([404, { error: { code: "artifact_not_found" } }]);
    }
  });

  test.each(["manifest.json", "../raw.csv", "raw.csv/", "/etc/passwd", "./raw.csv", "r*.csv"])(
    "%s is not one of its files",
    async (path) => {
      const id = await upload("a\n1\n", "csv");
      const { status, body } = await preview(id, path);
      expect([status, body.error?.code]).toEqual([404, "file_not_found"]);
    },
  );

  test("an artifact without a table gets an error; a file name that looks like a pattern is taken literally", async () => {
    const worker = await forge.worker("w");
    const made = async (files: Record<string, string>): Promise<string> => {
      const { job_id } = await forge.user.submit("audit", { dataset_uri: "s3://b/d.parquet" });
      const job = await worker.take();
      for (const [path, content] of Object.entries(files)) {
        const query = `worker_id=w&attempt=${job.attempt}`;
        const url = `${forge.stack.apiUrl}/worker/jobs/${job_id}/artifacts/${encodeURIComponent(path)}?${query}`;
        const { status } = await fetch(url, {
          method: "PUT",
          headers: {
            "x-service-api-key": forge.stack.keys.workerKey,
            "content-type": "application/octet-stream",
            "x-checksum-sha256": createHash("sha256").update(content).digest("hex"),
          },
          body: content,
        });
        expect([path, status]).toEqual([path, 201]);
      }
      await worker.complete(job);
      const { result } = await untilEnded(forge.user, job_id);
      return String(result?.dataset_id);
    };
    const plain = await preview(await made({ "metrics.json": "{}" }));
    expect([plain.status, plain.body.error]).toMatchObject([
      404,
      { code: "file_not_found", message: expect.stringContaining("no table") },
    ]);
    const files = {
      "it's [a]*.csv": "a\n1\n",
      "itsa.csv": "a\n2\n",
      "scored.jsonl": '{"q":1}\n',
      "x.txt": "x",
    };
    const id = await made(files);
    expect((await preview(id)).body).toMatchObject({ path: "scored.jsonl", rows: [{ q: 1 }] });
    expect((await preview(id, "it's [a]*.csv")).body).toMatchObject({ rows: [{ a: 1 }] });
    expect(await preview(id, "x.txt")).toMatchObject({ status: 422 });
    await forge.endTest();
  });
});

describe("whatever the file, the server survives", () => {
  test("a parquet file in which only the footer is valid", async () => {
    const good = readFileSync(
      await parquet("small.parquet", "select i, md5(i::varchar) t from range(50000) r(i)"),
    );
    const footer = good.readUInt32LE(good.length - 8) + 8;
    for (const fill of [0, 0xff, 0x5a]) {
      const bad = Buffer.from(good);
      bad.fill(fill, 4, bad.length - footer);
      const { status, body } = await preview(await upload(bad, "parquet"));
      expect([status, body.error?.code]).toEqual([422, "preview_failed"]);
      expect(body.error?.message).not.toMatch(/\/dev\/fd|\/tmp|\n/);
    }
    expect((await preview(await upload(good, "parquet"))).status).toBe(200);
  });

  slowTest("a reader process that is killed or hangs is replaced", async () => {
    await preview(await upload("a\n1\n", "csv"));
    const ends: [status: number, end: (pid: number) => unknown][] = [
      // The reader process is killed: the server lets another process read the file.
      [200, (pid) => process.kill(pid, "SIGKILL")],
      // The reader process hangs: the server gives up after four times the time limit. It answers
      // 503, because the file may be valid.
      [503, () => undefined],
    ];
    for (const [n, [expected, end]] of ends.entries()) {
      const id = await upload(`a\n${n + 10}\n`, "csv");
      const pid = readerPid();
      process.kill(pid, "SIGSTOP");
      const [asked, again] = [preview(id), preview(id)];
      await sleep(300);
      end(pid);
      for (const { status } of [await asked, await again]) expect(status).toBe(expected);
      expect((await preview(id)).body).toMatchObject({ num_rows: 1, rows: [{ a: n + 10 }] });
      await waitFor("one process of the two", () => enginePids().length === 1);
      expect(enginePids()).not.toContain(pid);
    }
  });

  test("a stored file that was replaced, or is a link, is not read", async () => {
    const id = await upload("a\n1\n", "csv");
    const path = join(forge.stack.storeDir, "artifacts/datasets", id, "raw.csv");
    const outside = join(folder, "outside.csv");
    renameSync(path, outside);
    expect((await preview(id)).status).toBe(404);
    symlinkSync(outside, path);
    expect((await preview(id)).status).toBe(404);
  });

  test("it ends with the server", async () => {
    const id = await upload("a\n3\n", "csv");
    const pid = readerPid();
    process.kill(pid, "SIGSTOP");
    const asked = preview(id).catch(() => undefined);
    await sleep(200);
    await forge.stack.server?.stop();
    await asked;
    expect(() => process.kill(pid, 0)).toThrow();
    await forge.stack.startServer();
  });

  test("it ends with a server that is killed", async () => {
    await preview(await upload("a\n5\n", "csv"));
    const pid = readerPid();
    await forge.stack.server?.kill();
    await waitFor("the process to be gone", () => !existsSync(`/proc/${pid}`));
    await forge.stack.startServer();
  });
});
