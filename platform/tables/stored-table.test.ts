import { measureArtifact, tableFilesOf } from "./stored-table";
import { tableFormat } from "./table-format";

test("an artifact's table is the file with the specified name, else all files of one format", () => {
  const tables = (...paths: string[]): string[] =>
    tableFilesOf(paths.map((path) => ({ path }))).map(({ path }) => path);
  expect(tables("a.csv", "report.json", "scored.parquet")).toEqual(["scored.parquet"]);
  expect(tables("report.json", "data/1.NDJSON", "data/2.jsonl", "y.csv")).toEqual([
    "data/1.NDJSON",
    "data/2.jsonl",
  ]);
  expect(tables("report.json", "raw.csv.gz")).toEqual([]);
});

test.each(["x.constructor", "parquet", "x.toString"])("%s is not the name of a table", (path) => {
  expect(tableFormat(path)).toBeUndefined();
});

const HOUR_MS = 3_600_000;

test.each([
  ["wait for an hour each", 0, HOUR_MS + 1, 4],
  ["are read for more than half an hour each", HOUR_MS / 2 + 1, 0, 2],
])("the rows of files that %s", async (_what, readMs, passedMs, numRows) => {
  let nowMs = 0;
  const clock = jest.spyOn(performance, "now").mockImplementation(() => nowMs);
  const tables: Parameters<typeof measureArtifact>[0] = {
    measure: async (_table, _signal, onRead) => {
      nowMs += passedMs;
      onRead?.(readMs);
      return { numRows: 1, columns: [] };
    },
  };
  const files = [1, 2, 3, 4].map((n) => ({ path: `${n}.csv`, sizeBytes: 1, sha256: "" }));
  const { signal } = new AbortController();
  const measured = await measureArtifact(tables, { tenant: "t", prefix: "a/", files }, signal);
  clock.mockRestore();
  expect(measured).toMatchObject({ numRows });
  expect(measured?.unreadable).toHaveLength(4 - numRows);
});
