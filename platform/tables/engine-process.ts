import { writeFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";
import { interruptionOf } from "./interruption";
import { measureTable } from "./measure-table";
import { previewTable } from "./preview-table";
import { OVER_MEMORY, READER_STARTED, type TableAnswer, type TableRequest } from "./protocol";
import { NotATable } from "./table";

/**
 * The most memory that the process may use. If it uses more, it ends itself. DuckDB's own limit is
 * far lower, but does not include all of DuckDB's memory.
 */
const MAX_RSS_BYTES = 768 * 1024 * 1024;
const CHECK_MS = 50;
const MAX_MESSAGE = 300;

/**
 * Reads users' tables in a process separate from the server. A file that makes DuckDB crash, hang
 * or use too much memory ends only this process. The server passes it no environment variables
 * except TZ, so it knows no secrets.
 */
function main(): void {
  preferForOomKill();
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  const started = startThreads();
  void started.then(() => process.send?.(READER_STARTED));
  process.on("message", (request: TableRequest) => {
    void started.then(() => answer(request)).then((message) => process.send?.(message));
  });
  setInterval(() => {
    if (process.memoryUsage.rss() > MAX_RSS_BYTES) process.kill(process.pid, OVER_MEMORY);
  }, CHECK_MS).unref();
}

/**
 * Loads DuckDB and makes Node.js create its threads. Each of these steps aborts the process if the
 * machine lacks memory or threads. Run this before the first file is read: if the process crashes
 * while it reads a file, the server blames the file.
 */
async function startThreads(): Promise<void> {
  (await DuckDBInstance.create(":memory:")).closeSync();
}

/** When memory runs out, the kernel should kill this process first. */
function preferForOomKill(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Not available on every system.
  }
}

const WORK = { measure: measureTable, preview: previewTable };

async function answer({ id, work, path, format }: TableRequest): Promise<TableAnswer> {
  const outcome = await WORK[work](path, format).then(
    (result) => ({ result: JSON.stringify(result) }),
    (error: unknown) => {
      if (error instanceof NotATable && error.row !== undefined) {
        return { failure: error.message, row: error.row };
      }
      const interruption = interruptionOf(error);
      if (interruption !== undefined) return { interruption };
      return { failure: `the file can't be read as ${format}: ${reasonOf(error)}` };
    },
  );
  return { id, rssBytes: process.memoryUsage.rss(), ...outcome };
}

/** The first line of DuckDB's message, without the file's path (`/dev/fd/<n>`). */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof NotATable) return message;
  if (message.startsWith("Out of Memory")) return "it needs more memory than is allowed";
  const [line = ""] = message.split(/[\n\r]/, 1);
  const words = line.replaceAll(/ ?["']?\/dev\/fd\/\d+["']?/g, "").replaceAll(/\p{Cc}/gu, "?");
  return words.slice(0, MAX_MESSAGE).trim();
}

main();
