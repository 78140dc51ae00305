import { writeFileSync } from "node:fs";
import { measureTable } from "./measure-table";
import { previewTable } from "./preview-table";
import type { TableAnswer, TableRequest } from "./protocol";
import { NotATable } from "./table";

/** Far above what the database's own limit leaves: what it does not count must not take the machine's. */
const MAX_RSS_BYTES = 768 * 1024 * 1024;
const LOOK_MS = 50;
const MAX_MESSAGE = 300;

/**
 * The process that reads users' tables, apart from the server: a file that makes the database crash, hang
 * or swell ends this process and nothing else. It knows no secret, for its environment is empty.
 */
function main(): void {
  offerItself();
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.on("message", (request: TableRequest) => {
    void answer(request).then((message) => process.send?.(message));
  });
  setInterval(() => {
    if (process.memoryUsage.rss() > MAX_RSS_BYTES) process.kill(process.pid, "SIGKILL");
  }, LOOK_MS).unref();
}

/** Where memory runs out, this process is the one to go. */
function offerItself(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Not on every system.
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
      return { failure: `the file can't be read as ${format}: ${reasonOf(error)}` };
    },
  );
  return { id, rssBytes: process.memoryUsage.rss(), ...outcome };
}

/** The first line of what the database says, without its name for the file. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof NotATable) return message;
  // Where the file lies is for whoever runs the server to know.
  if (/^E[A-Z]+: /.test(message)) return "it can't be opened";
  if (message.startsWith("Out of Memory")) return "it takes more memory than it may";
  const [line = ""] = message.split(/[\n\r]/, 1);
  const words = line.replaceAll(/ ?["']?\/dev\/fd\/\d+["']?/g, "").replaceAll(/\p{Cc}/gu, "?");
  return words.slice(0, MAX_MESSAGE).trim();
}

main();
