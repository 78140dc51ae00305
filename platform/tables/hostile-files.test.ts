import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import fc from "fast-check";
import { HOSTILE_FILES } from "../../test/support/hostile-files";
import { createLogger } from "../logger";
import { TableEngine } from "./engine";
import type { TableFormat } from "./table-format";
import { Unreadable } from "./unreadable";

/** The program of the reader process, as the build has compiled it. */
const PROGRAM = join(__dirname, "../../dist/platform/tables/engine-process.js");

let folder: string;
let engine: TableEngine;
let peakMb = 0;
/** Running time of all reads so far, in ms. It is CPU time, so other load hardly changes it. */
let readMs = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-hostile-"));
  engine = new TableEngine({ idleMs: 60_000, program: PROGRAM }, createLogger("silent"));
});

afterAll(async () => {
  await engine.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Peak memory in MB; 0 for a process that has ended. */
function peakOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Measures and previews a file. Returns results and refusals; throws any other error. */
async function outcomesOf(format: TableFormat, bytes: Buffer): Promise<unknown[]> {
  const path = join(folder, `table.${format}`);
  writeFileSync(path, bytes);
  const outcomes: unknown[] = [];
  for (const work of ["measure", "preview"] as const) {
    const onRead = (ms: number): void => {
      readMs += ms;
    };
    const reading = engine.read({ work, path, format, tenant: "t", timeoutMs: 20_000, onRead });
    outcomes.push(
      await reading.then(
        (result): unknown => JSON.parse(result),
        (error: unknown) => {
          if (error instanceof Unreadable) return error.message;
          throw error;
        },
      ),
    );
    peakMb = Math.max(peakMb, peakOf(engine.pid));
  }
  return outcomes;
}

test.each(HOSTILE_FILES)(
  "$what: is read or refused within limits",
  async ({ format, bytes }) => {
    const before = readMs;
    const outcomes = await outcomesOf(format, bytes());
    expect(outcomes).toHaveLength(2);
    expect(readMs - before).toBeLessThan(20_000);
    expect(peakMb).toBeLessThan(900);
  },
  // The test's time-out, in ms. On a busy machine, a read may take many times its CPU time, because
  // the reader has a low priority.
  240_000,
);

test("the reader's running time was measured", () => {
  expect(readMs).toBeGreaterThan(0);
});

const TEXTS: Record<"csv" | "jsonl", string> = {
  csv: 'id,score,text,ok\n1,1.5,"a, ""b""\nc",true\n2,,é,false\n3,1e5,x,TRUE\n',
  jsonl: '{"id":1,"l":[1,{"a":null}],"t":"é"}\n\n{"id":2.5,"s":{"a":"b"}}\n{"id":null,"ok":true}\n',
};

async function validFile(format: TableFormat): Promise<Buffer> {
  if (format !== "parquet") return Buffer.from(TEXTS[format]);
  const path = join(folder, "valid.parquet");
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  await connection.run(
    `copy (select i as id, i / 3.0 as x, md5(i::varchar) as t, [i, i + 1] as l, {'a': i} as s,
     timestamp '2024-01-01' + to_seconds(i) as at from range(300) r(i)) to '${path}' (format parquet)`,
  );
  connection.closeSync();
  return readFileSync(path);
}

/**
 * Random changes to a file. Most are in the last tenth of the file, where parquet has its footer.
 */
const changes = fc.array(
  fc.record({
    at: fc.oneof(
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0.9, max: 1, noNaN: true }),
    ),
    put: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 4 }),
      fc
        .constantFrom(...'",\n\r\\{}[]:0-e\0', "\u00ff\u00ff\u00ff\u007f")
        .map((text) => Buffer.from(text, "latin1")),
    ),
    how: fc.constantFrom("replace", "insert", "cut"),
  }),
  { minLength: 1, maxLength: 6 },
);

test.each<TableFormat>(["csv", "jsonl", "parquet"])(
  "%s with changed bytes is read or refused, without a crash",
  async (format) => {
    const valid = await validFile(format);
    expect(await outcomesOf(format, valid)).toEqual([
      expect.objectContaining({ numRows: expect.any(Number) }),
      expect.objectContaining({ num_rows: expect.any(Number) }),
    ]);
    await fc.assert(
      fc.asyncProperty(changes, async (made) => {
        let bytes = valid;
        for (const { at, put, how } of made) {
          const start = Math.floor(at * bytes.length);
          const rest = how === "insert" ? start : start + put.length;
          const piece = how === "cut" ? Buffer.alloc(0) : put;
          bytes = Buffer.concat([bytes.subarray(0, start), piece, bytes.subarray(rest)]);
        }
        expect(await outcomesOf(format, bytes)).toHaveLength(2);
        expect(peakMb).toBeLessThan(900);
      }),
      { numRuns: process.env.TEST_SLOW ? 25 : 6, endOnFailure: true },
    );
  },
);
