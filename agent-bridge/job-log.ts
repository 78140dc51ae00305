import { z } from "zod";
import { storeUri } from "../core/artifacts/artifacts";
import { ForgeError, InvalidRequest } from "../core/errors";
import { logKey } from "../core/jobs/attempt-files";
import { type Route, route } from "../platform/http/route";
import { readSentRange, sentBytes } from "../platform/http/sent-body";
import type { ByteRange } from "../platform/store/object-store";
import type { Context } from "../services/context";
import { recordLog } from "../services/jobs/leases";
import { LEASE_REFUSALS, leaseHeaders, leaseQuery, requireLease } from "./require-lease";

export function jobLogRoute(ctx: Context): Route {
  return route({
    method: "PATCH",
    paths: ["/worker/jobs/:job_id/log"],
    scope: "worker",
    outsideConnectionQueue: true,
    skipsRateLimit: true,
    operationId: "appendJobLog",
    tag: "Worker protocol",
    summary: "Append to the log of a running attempt",
    description:
      "The bytes are stored at the offset in `Content-Range`. Bytes that are already stored are skipped, so " +
      "you may repeat a request whose answer was lost. If the offset lies beyond the end of the log, the " +
      "answer is 416, and its header `Range` has the stored range.",
    query: leaseQuery,
    headers: {
      ...leaseHeaders,
      "Content-Range": z.string().max(64).describe("bytes a-b/*: the offsets of this part"),
    },
    stream: {
      contentTypes: ["text/plain", "application/octet-stream"],
      description: "the next bytes of the log, UTF-8",
    },
    responses: {
      202: {
        description: "the log's length, and whether the job must stop",
        schema: z.object({ length: z.int(), cancelled: z.boolean() }),
      },
    },
    errorCodes: { ...LEASE_REFUSALS, 413: ["log_too_large"], 416: ["range_not_satisfiable"] },
    async handle(call) {
      const { request, reply, headers } = call;
      const lease = await requireLease(ctx, call);
      const { job_id: jobId, attempt, cancelled } = lease;
      const range = requireRange(headers["Content-Range"]);
      const key = logKey(jobId, attempt);
      const length = (await ctx.store.sizeOf(key)) ?? 0;
      if (range.start > length) {
        if (length > 0) reply.header("range", `bytes=0-${length - 1}`);
        const message = `the log has ${length} bytes; continue from there`;
        throw new ForgeError(416, "range_not_satisfiable", message, "Content-Range");
      }
      if (range.end >= ctx.config.jobs.maxLogBytes) {
        const message = `a log may have at most ${ctx.config.jobs.maxLogBytes} bytes`;
        throw new ForgeError(413, "log_too_large", message, "Content-Range");
      }
      ctx.waitingRequests.register(request, call.principal, reply);
      const sent = { length: range.end + 1 - range.start, skipped: length - range.start };
      await ctx.store.append(key, length, sentBytes(request, sent));
      if (lease.logs_uri === null) await recordLog(ctx.pool, lease, storeUri(key));
      return { length: Math.max(length, range.end + 1), cancelled };
    },
  });
}

function requireRange(header: string | undefined): ByteRange {
  const range = readSentRange(header ?? "");
  if (range === undefined || range.isStatusRequest) {
    throw new InvalidRequest('must be like "bytes 0-1023/*"', "Content-Range");
  }
  return range;
}
