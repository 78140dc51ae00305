import { buffer } from "node:stream/consumers";
import type { TenantScope } from "../../core/accounts/permissions";
import { logKey } from "../../core/jobs/attempt-files";
import { isFinal, waitsForWorker } from "../../core/jobs/states";
import { KEEP_ALIVE, KEEP_ALIVE_MS, type ServerSentEvent } from "../../platform/http/sse";
import type { Context } from "../../services/context";
import { findJobSnapshot, type JobSnapshot } from "../../services/jobs/job-events";
import type { JobWatch } from "./job-watch";

/**
 * Id of a log event: `<attempt>-<offset>`, with the offset of the first byte after the event's
 * text. Empty if the client has received no event.
 */
export const LOG_EVENT_ID = /^(?:([1-9])-([0-9]{1,15}))?$/;

const CHUNK_BYTES = 64 * 1024;
/** How often a running attempt's log is checked. */
const POLL_MS = 500;

interface LogPosition {
  attempt: number;
  offset: number;
}

/** The position after an event; undefined if the client has received none. */
export function positionAfter(eventId = ""): LogPosition | undefined {
  const [, attempt, offset] = LOG_EVENT_ID.exec(eventId) ?? [];
  return attempt ? { attempt: Number(attempt), offset: Number(offset) } : undefined;
}

/** Whether the attempt can add nothing more to its log. */
const hasEnded = ({ status, attempts }: JobSnapshot, attempt: number): boolean =>
  isFinal(status) || attempts > attempt || (attempts === attempt && waitsForWorker(status));

interface FollowedLog {
  jobId: string;
  tenantScope: TenantScope;
  from: LogPosition;
  /** Follow this attempt only; undefined: follow later attempts too. */
  only: number | undefined;
}

/**
 * Streams a job's log, starting at `from`. If `only` is set, ends when the attempt in `from` has
 * ended. Otherwise, continues with the later attempts until the job has ended.
 */
export async function* followLog(
  ctx: Context,
  watch: JobWatch,
  { jobId, tenantScope, from, only }: FollowedLog,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent | typeof KEEP_ALIVE> {
  const watcher = watch.watch(jobId, signal);
  let { attempt, offset } = from;
  let lastSentMs = performance.now();
  let job: JobSnapshot | undefined;
  try {
    while (!signal.aborted) {
      // Read the job before the log. If the attempt has ended according to the job, its log no
      // longer grows, so the log that is read next is complete. The job is read again only after
      // the watcher has reported a change.
      job ??= await findJobSnapshot(ctx.pool, jobId, tenantScope);
      if (!job) return;
      const isOver = hasEnded(job, attempt);
      const chunk = await readChunk(ctx, logKey(jobId, attempt), offset, isOver);
      if (chunk) {
        const data = JSON.stringify({ attempt, offset, text: chunk.text });
        offset += chunk.bytes;
        lastSentMs = performance.now();
        yield { id: `${attempt}-${offset}`, event: "log", data };
      } else if (job.attempts > attempt && only === undefined) {
        attempt += 1;
        offset = 0;
      } else if (isOver && (only !== undefined || isFinal(job.status))) {
        yield { event: "end", data: JSON.stringify({ job_id: jobId, status: job.status }) };
        return;
      } else {
        // A job that waits for a worker needs no polling: its log starts after its dispatch, and
        // the watcher reports the dispatch.
        const keepAliveAt = lastSentMs + KEEP_ALIVE_MS;
        const pauseMs = waitsForWorker(job.status) ? keepAliveAt - performance.now() : POLL_MS;
        if (await watcher.next(pauseMs)) job = undefined;
        if (performance.now() < keepAliveAt) continue;
        lastSentMs = performance.now();
        yield KEEP_ALIVE;
      }
    }
  } finally {
    watcher.close();
  }
}

/**
 * Reads the next complete lines of a log. Also returns an incomplete last line if the log has
 * ended, and a part of a line if the line is longer than CHUNK_BYTES.
 */
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
  if (bytes === 0 && isFull) bytes = read.length - incompleteTail(read);
  return bytes === 0 ? undefined : { text: read.toString("utf8", 0, bytes), bytes };
}

/**
 * The number of bytes at the end to leave for the next read, because they may be an incomplete
 * UTF-8 character.
 */
function incompleteTail(bytes: Buffer): number {
  for (let length = 1; length <= 3; length++) {
    const byte = bytes.at(-length) ?? 0;
    if ((byte & 0b1100_0000) !== 0b1000_0000) return byte >= 0b1100_0000 ? length : 0;
  }
  return 0;
}
