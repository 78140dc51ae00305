import { createHash } from "node:crypto";
import { InvalidRequest } from "../core/errors";
import { checkpointPrefix } from "../core/jobs/attempt-files";
import { type Route, route } from "../platform/http/route";
import { requireRoomForBytes } from "../services/accounts/require-room";
import type { Context } from "../services/context";
import {
  confirmUpload,
  findRecordedFile,
  type RecordedFile,
  recordMove,
  recordUpload,
} from "../services/jobs/attempt-files";
import { type Lease, recordCheckpoint } from "../services/jobs/leases";
import { outputPrefix } from "./output-prefix";
import { fileHeaders, receivedSchema, receiveFile, requirePlainPath } from "./receive-file";
import {
  LEASE_REFUSALS,
  leaseHeaders,
  leaseQuery,
  requireLease,
  staleLease,
} from "./require-lease";

/** Fields that the routes for artifact files and for checkpoints share. */
const UPLOAD = {
  method: "PUT",
  scope: "worker",
  outsideConnectionQueue: true,
  skipsRateLimit: true,
  tag: "Worker protocol",
  query: leaseQuery,
  headers: { ...fileHeaders, ...leaseHeaders },
  stream: {
    contentTypes: ["application/octet-stream"],
    description: "the file, or the part of it that Content-Range gives",
  },
  responses: {
    201: { description: "the file is complete", schema: receivedSchema },
    202: { description: "the part is stored", schema: receivedSchema },
  },
  errorCodes: {
    ...LEASE_REFUSALS,
    400: ["checksum_mismatch"],
    409: [...LEASE_REFUSALS[409], "upload_conflict", "quota_exceeded"],
    416: ["range_not_satisfiable"],
  },
} satisfies Partial<Route>;

/** Uploads of a running attempt: files of its artifact, and checkpoints for later attempts. */
export function jobUploadRoutes(ctx: Context): Route[] {
  return [
    route({
      ...UPLOAD,
      paths: ["/worker/jobs/:job_id/artifacts/*"],
      operationId: "uploadArtifactFile",
      summary: "Upload an artifact file of a running attempt",
      description:
        "The file is in the artifact's folder when the answer has `complete` true. A large file may be sent in " +
        "parts, in order; an interrupted upload may continue where it stopped.",
      async handle(call) {
        const path = requirePlainPath(call.params["*"] ?? "");
        const lease = await requireLease(ctx, call);
        const { job_id: jobId, attempt } = lease;
        ctx.waitingRequests.register(call.request, call.principal, call.reply);
        await requireRoomForBytes(ctx.pool, ctx.config.limits.caps, lease.user_id);
        return await receiveFile(ctx, call, {
          jobId,
          attempt,
          path,
          key: `${requirePrefix(lease)}${path}`,
          partialName: `artifact-${nameOf(path)}`,
          findRecorded: () => findRecordedFile(ctx.pool, jobId, attempt, path),
          async onComplete(measured) {
            const isRecorded = await recordUpload(ctx.pool, jobId, attempt, { path, ...measured });
            if (!isRecorded) throw staleLease(jobId, attempt, call.query.worker_id);
          },
          onMoved: (isThere) => recordMove(ctx.pool, jobId, attempt, { path, isThere }),
          onFound: ({ sha256 }) => confirmUpload(ctx.pool, jobId, attempt, { path, sha256 }),
        });
      },
    }),
    route({
      ...UPLOAD,
      paths: ["/worker/jobs/:job_id/checkpoints/:name"],
      operationId: "uploadCheckpoint",
      summary: "Upload a checkpoint for later attempts",
      description:
        "The next attempt gets the newest complete checkpoint as `resume_from`. Earlier checkpoints of this " +
        "attempt are removed.",
      async handle(call) {
        const name = requirePlainPath(call.params.name ?? "");
        const lease = await requireLease(ctx, call);
        const { job_id: jobId, attempt } = lease;
        ctx.waitingRequests.register(call.request, call.principal, call.reply);
        const prefix = checkpointPrefix(jobId, attempt);
        const received = await receiveFile(ctx, call, {
          jobId,
          attempt,
          path: name,
          key: `${prefix}${name}`,
          partialName: `checkpoint-${nameOf(name)}`,
          findRecorded: async () => recordedCheckpoint(lease, name),
          onComplete: async () => void (await requireLease(ctx, call)),
        });
        if (!received.complete || received.sha256 === null) return received;
        const { sha256, received: sizeBytes } = received;
        const checkpoint = { attempt, name, size_bytes: sizeBytes, sha256 };
        if (!(await recordCheckpoint(ctx.pool, lease, checkpoint))) {
          await requireLease(ctx, call);
          return received;
        }
        const previous = lease.checkpoint?.name ?? name;
        if (previous !== name) await ctx.store.remove(`${prefix}${previous}`);
        return received;
      },
    }),
  ];
}

function requirePrefix(lease: Lease): string {
  const prefix = outputPrefix(lease);
  if (prefix === undefined) throw new InvalidRequest("the attempt produces no artifact", "path");
  return prefix;
}

function recordedCheckpoint(
  { attempt, checkpoint }: Lease,
  name: string,
): RecordedFile | undefined {
  if (checkpoint?.attempt !== attempt || checkpoint.name !== name) return undefined;
  return { sizeBytes: checkpoint.size_bytes, sha256: checkpoint.sha256, isConfirmed: true };
}

/** Maps a path of several segments to a single name. */
const nameOf = (path: string): string => createHash("sha256").update(path).digest("hex");
