import { tableFilesOf } from "./stored-table";
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
