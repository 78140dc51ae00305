import { buffer } from "node:stream/consumers";
import type { TenantScope } from "../../core/accounts/principal";
import { logKey } from "../../core/jobs/attempt-files";
import { isFinal, waitsForWorker } from "../../core/jobs/states";
import { KEEP_ALIVE, KEEP_ALIVE_MS, type ServerSentEvent } from "../../platform/http/sse";
import type { Context } from "../../services/context";
import { glanceAtJob, type JobGlance } from "../../services/jobs/job-events";
import type { JobWatch } from "./job-watch";

/** The attempt, and the offset of the first byte that has not been sent. */
export const LOG_EVENT_ID = /^(?:([1-9])-([0-9]{1,15}))?$/;

const CHUNK_BYTES = 64 * 1024;
/** How often a log that is being written is looked at. */
const LOOK_MS = 500;

interface LogPosition {
  attempt: number;
  offset: number;
}

/** Where to go on after an event; undefined for none, which is how it begins. */
export function positionAfter(eventId = ""): LogPosition | undefined {
  const [, attempt, offset] = LOG_EVENT_ID.exec(eventId) ?? [];
  return attempt ? { attempt: Number(attempt), offset: Number(offset) } : undefined;
}

interface FollowedLog {
  jobId: string;
  tenantScope: TenantScope;
  from: LogPosition;
  /** The one attempt that is followed; undefined: whichever runs. */
  only: number | undefined;
}

/** A log from a position on, as it grows, until its attempt and all that follow it have ended. */
export async function* followLog(
  ctx: Context,
  watch: JobWatch,
  { jobId, tenantScope, from, only }: FollowedLog,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent | typeof KEEP_ALIVE> {
  const watcher = watch.watch(jobId, signal);
  let { attempt, offset } = from;
  let spokeMs = performance.now();
  let job: JobGlance | undefined;
  try {
    while (!signal.aborted) {
      // First whether it is over, then what was written: nothing comes after the last look. While the
      // watcher tells of no change, the job is as it was.
      job ??= await glanceAtJob(ctx.pool, jobId, tenantScope);
      if (!job) return;
      const isOver = isFinal(job.status) || job.attempts > attempt;
      const chunk = await readChunk(ctx, logKey(jobId, attempt), offset, isOver);
      if (chunk) {
        const data = JSON.stringify({ attempt, offset, text: chunk.text });
        offset += chunk.bytes;
        spokeMs = performance.now();
        yield { id: `${attempt}-${offset}`, event: "log", data };
      } else if (job.attempts > attempt && only === undefined) {
        attempt += 1;
        offset = 0;
      } else if (isOver) {
        yield { event: "end", data: JSON.stringify({ job_id: jobId, status: job.status }) };
        return;
      } else {
        // Nobody writes a log before its attempt is handed out: the watcher tells of that.
        const quietUntil = spokeMs + KEEP_ALIVE_MS;
        const pauseMs = waitsForWorker(job.status) ? quietUntil - performance.now() : LOOK_MS;
        if (await watcher.next(pauseMs)) job = undefined;
        if (performance.now() < quietUntil) continue;
        spokeMs = performance.now();
        yield KEEP_ALIVE;
      }
    }
  } finally {
    watcher.close();
  }
}

/** The next whole lines of a log; what has no line's end yet waits for it, unless none will come. */
async function readChunk(
  ctx: Context,
  key: string,
  offset: number,
  isOver: boolean,
): Promise<{ text: string; bytes: number } | undefined> {
  const size = (await ctx.store.sizeOf(key)) ?? 0;
  if (size <= offset) return undefined;
  const end = Math.min(size, offset + CHUNK_BYTES) - 1;
  const read = await buffer(ctx.store.read(key, { start: offset, end }));
  const lines = read.lastIndexOf(0x0a) + 1;
  const isFull = read.length === CHUNK_BYTES;
  const isLast = isOver && end === size - 1;
  let bytes = isLast ? read.length : lines;
  if (bytes === 0 && isFull) bytes = read.length - brokenTail(read);
  return bytes === 0 ? undefined : { text: read.toString("utf8", 0, bytes), bytes };
}

/** Bytes of a character that was cut in two, at the end. */
function brokenTail(bytes: Buffer): number {
  for (let length = 1; length <= 3; length++) {
    const byte = bytes.at(-length) ?? 0;
    if ((byte & 0b1100_0000) !== 0b1000_0000) return byte >= 0b1100_0000 ? length : 0;
  }
  return 0;
}
