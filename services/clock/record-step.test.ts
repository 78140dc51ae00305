import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { WAITS } from "./record-step";

/**
 * The folders whose SQL this test reads. If SQL compares a column with the database's clock, the
 * column must be in WAITS or in HARMLESS. `recordStep` corrects the columns in WAITS when the clock
 * was set. This test does not find columns inside a template, such as `${time} < now()`.
 */
const FOLDERS = ["services", "platform/postgres"];
const MIGRATIONS = join(checkoutRoot(), "platform/postgres/migrations");

const KEPT = "retention uses the dates of the clock (docs/operating.md)";
const PROMISED = "its owner knows the date at which it ends";
const MOVED = "recordStep moves it as one of RUNS";
const DRAWN = "at worst a chart lacks points or shows them at other times";
const BEGINS =
  "a deployment's times only follow each other; clock offsets give its lifetime (lifetime.ts)";

/**
 * Columns that are compared with the clock but are not in WAITS, by file, and why that is harmless.
 */
const HARMLESS: Record<string, string> = {
  "artifact-deletion.ts: deleted_at": KEPT,
  "budgets.ts: completed_at": "a job that still has no bill counts for a day, more or less",
  "deployment-requests.ts: at": DRAWN,
  "deployments.ts: active_at": BEGINS,
  "deployments.ts: ended_at": BEGINS,
  "deployments.ts: stop_requested_at": BEGINS,
  "download-tickets.ts: expires_at": PROMISED,
  "job-metrics.ts: at": DRAWN,
  "job-metrics.ts: started_at": MOVED,
  "keys.ts: expires_at": PROMISED,
  "keys.ts: last_used_at": "it is only shown",
  "orphaned-files.ts: completed_at": KEPT,
  "overdue-attempts.ts: assigned_at": MOVED,
  "overdue-attempts.ts: cancel_by": MOVED,
  "overdue-attempts.ts: deadline_at": MOVED,
  "overdue-attempts.ts: started_at": MOVED,
  "placement-reports.ts: serving_at":
    "at worst an early end of a server does not delay the next one",
  "sessions.ts: expires_at": PROMISED,
  "stuck-writes.ts: tried_at": KEPT,
  "worker-samples.ts: at": DRAWN,
};

const CLOCK = String.raw`(?:now|clock_timestamp|statement_timestamp)\(\)`;
/** Matches an interval that is added to or subtracted from the clock before the comparison. */
const SPAN = String.raw`(?:\s*[+-]\s*(?:make_interval\([^()]*(?:\([^()]*\))?[^()]*\)|interval\s+'[^']*'|\$\{\w+(?:\([^}]*\))?\}))?`;
const COLUMN = String.raw`(?:(?:min|max|coalesce)\()?(?:\w+\.)?([a-z_]+)`;
const COMPARED = [
  new RegExp(String.raw`${COLUMN}\)?\s*(?:<=|>=|<|>|-|between)\s*${CLOCK}`, "g"),
  new RegExp(String.raw`${CLOCK}${SPAN}\s*(?:<=|>=|<|>|-)\s*${COLUMN}`, "g"),
  new RegExp(String.raw`(?:greatest|least)\(${CLOCK}, ${COLUMN}`, "g"),
];

/**
 * Reads a source. Replaces the constant LOCKED_AT, which the patterns would not recognize as a time
 * of the clock.
 */
const read = (path: string): string =>
  readFileSync(path, "utf8").replaceAll("${LOCKED_AT}", "now()");

/** Returns the text of the pattern's first group in each match. */
const findAll = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].flatMap(([, found]) => found ?? []);

const SOURCES = FOLDERS.flatMap((folder) =>
  readdirSync(join(checkoutRoot(), folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .map((path) => ({ file: basename(path), text: read(join(checkoutRoot(), folder, path)) })),
);

const TIMES = new Set(
  readdirSync(MIGRATIONS).flatMap((file) =>
    findAll(read(join(MIGRATIONS, file)), /(\w+)\s+timestamptz\b/g),
  ),
);

const comparedIn = (text: string): string[] =>
  COMPARED.flatMap((pattern) => findAll(text, pattern)).filter((name) => TIMES.has(name));

const isWait = (text: string, column: string): boolean =>
  WAITS.some(
    ([table, known]) => known === column && new RegExp(String.raw`\b${table}\b`).test(text),
  );

test("every time that is compared with the clock is in WAITS or listed as harmless", () => {
  const found = SOURCES.flatMap(({ file, text }) =>
    comparedIn(text)
      .filter((column) => !isWait(text, column))
      .map((column) => `${file}: ${column}`),
  );
  expect([...new Set(found)].sort()).toEqual(Object.keys(HARMLESS).sort());
});

test("every column in WAITS is compared with the clock", () => {
  for (const [table, column] of WAITS) {
    const users = SOURCES.filter(({ text }) => new RegExp(String.raw`\b${table}\b`).test(text));
    const found = users.some(({ text }) => comparedIn(text).includes(column));
    expect([table, column, found]).toEqual([table, column, true]);
  }
});

test.each([
  "where due_at <= now()",
  "where o.due_at < now() - make_interval(secs => $1)",
  "where now() - interval '2 hours' > d.due_at",
  "extract(epoch from now() - min(due_at))",
  "coalesce(b.due_at > clock_timestamp(), false)",
  "where due_at < now() - ${RETRIED_AFTER}",
])("%s is a comparison", (sql) => {
  expect(comparedIn(sql)).toEqual(["due_at"]);
});
