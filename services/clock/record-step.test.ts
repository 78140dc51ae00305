import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { WAITS } from "./record-step";

/**
 * Each time that SQL compares with the database's clock must stand its being set. A time within a template, as
 * `${time} < now()`, is not found here.
 */
const FOLDERS = ["services", "platform/postgres"];
const MIGRATIONS = join(checkoutRoot(), "platform/postgres/migrations");

const KEPT = "what is kept for a time is removed by the clock's dates (docs/operating.md)";
const PROMISED = "ends at a date that its owner was told";
const MOVED = "recordStep moves it by a statement of its own";
const DRAWN = "at worst a chart lacks some points, or shows them at other times";
const BEGINS =
  "a deployment's times follow each other; clock offsets say how long it lived (lifetime.ts)";

/** Columns that are compared with the clock and are not in WAITS, by file: why that does no harm. */
const HARMLESS: Record<string, string> = {
  "artifact-deletion.ts: deleted_at": KEPT,
  "deployment-requests.ts: at": DRAWN,
  "deployments.ts: active_at": BEGINS,
  "deployments.ts: ended_at": BEGINS,
  "deployments.ts: stop_requested_at": BEGINS,
  "download-tickets.ts: expires_at": PROMISED,
  "job-metrics.ts: at": DRAWN,
  "job-metrics.ts: started_at": MOVED,
  "keys.ts: expires_at": PROMISED,
  "keys.ts: last_used_at": "it is only shown",
  "leftovers.ts: completed_at": KEPT,
  "overdue-attempts.ts: assigned_at": MOVED,
  "overdue-attempts.ts: cancel_by": MOVED,
  "overdue-attempts.ts: deadline_at": MOVED,
  "overdue-attempts.ts: started_at": MOVED,
  "placements.ts: serving_at": "at worst an early end of a server does not delay the next one",
  "sessions.ts: expires_at": PROMISED,
  "stuck-writes.ts: tried_at": KEPT,
  "worker-samples.ts: at": DRAWN,
};

const CLOCK = String.raw`(?:now|clock_timestamp|statement_timestamp)\(\)`;
/** What is added to the clock, or taken from it, before the two are compared. */
const SPAN = String.raw`(?:\s*[+-]\s*(?:make_interval\([^()]*(?:\([^()]*\))?[^()]*\)|interval\s+'[^']*'|\$\{\w+(?:\([^}]*\))?\}))?`;
const COLUMN = String.raw`(?:(?:min|max|coalesce)\()?(?:\w+\.)?([a-z_]+)`;
const COMPARED = [
  new RegExp(String.raw`${COLUMN}\)?\s*(?:<=|>=|<|>|-|between)\s*${CLOCK}`, "g"),
  new RegExp(String.raw`${CLOCK}${SPAN}\s*(?:<=|>=|<|>|-)\s*${COLUMN}`, "g"),
  new RegExp(String.raw`(?:greatest|least)\(${CLOCK}, ${COLUMN}`, "g"),
];

const read = (path: string): string => readFileSync(path, "utf8");

/** What the first group of a pattern finds. */
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

test("a time that is compared with the clock moves when that is set, or it is said why it need not", () => {
  const found = SOURCES.flatMap(({ file, text }) =>
    comparedIn(text)
      .filter((column) => !isWait(text, column))
      .map((column) => `${file}: ${column}`),
  );
  expect([...new Set(found)].sort()).toEqual(Object.keys(HARMLESS).sort());
});

test("what moves is compared with the clock", () => {
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
