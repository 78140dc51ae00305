import { createHash } from "node:crypto";
import { InvalidRequest } from "../core/errors";
import { checkpointPrefix } from "../core/jobs/attempt-files";
import { type Route, route } from "../platform/http/route";
import { requireRoomForBytes } from "../services/accounts/require-room";
import type { Context } from "../services/context";
import {
  findNotedFile,
  type NotedFile,
  noteAttemptFile,
  noteMoved,
  noteSeen,
} from "../services/jobs/attempt-files";
import { type Lease, noteCheckpoint } from "../services/jobs/leases";
import { LEASE_REFUSALS, leaseHeaders, leaseQuery, requireLease, staleLease } from "./job-lease";
import { outputPrefix } from "./output-prefix";
import { fileHeaders, receivedSchema, receiveFile, requirePlainPath } from "./receive-file";

/** What both kinds of upload declare alike. */
const UPLOAD = {
  method: "PUT",
  scope: "worker",
  waits: true,
  unlimited: true,
  tag: "Worker protocol",
  query: leaseQuery,
  headers: { ...fileHeaders, ...leaseHeaders },
  stream: {
    contentTypes: ["application/octet-stream"],
    description: "the file, or the part of it that Content-Range tells",
  },
  answers: {
    201: { description: "the file is complete", schema: receivedSchema },
    202: { description: "the part is there", schema: receivedSchema },
  },
  refusals: {
    ...LEASE_REFUSALS,
    400: ["checksum_mismatch"],
    409: [...LEASE_REFUSALS[409], "upload_conflict", "quota_exceeded"],
    416: ["range_not_satisfiable"],
  },
} satisfies Partial<Route>;

/** What a worker sends while it has a job: files of its artifact, and checkpoints to go on from. */
export function jobUploadRoutes(ctx: Context): Route[] {
  return [
    route({
      ...UPLOAD,
      paths: ["/worker/jobs/:job_id/artifacts/*"],
      operationId: "uploadArtifactFile",
      summary: "Upload a file of the artifact that a running attempt makes",
      description:
        "It lies in the artifact's folder when the answer is `complete`. A large file may come in parts, " +
        "one after the other, and go on where it broke off.",
      async handle(call) {
        const path = requirePlainPath(call.params["*"] ?? "");
        const lease = await requireLease(ctx, call);
        ctx.waitingRequests.park(call.request, call.principal, call.reply);
        await requireRoomForBytes(ctx.pool, ctx.config.limits.caps, lease.user_id);
        return await receiveFile(ctx, call, {
          jobId: lease.job_id,
          attempt: lease.attempt,
          path,
          key: `${requirePrefix(lease)}${path}`,
          partialName: `artifact-${nameOf(path)}`,
          noted: () => findNotedFile(ctx.pool, lease.job_id, lease.attempt, path),
          async onWhole(measured) {
            const file = { path, ...measured };
            const isNoted = await noteAttemptFile(ctx.pool, lease.job_id, lease.attempt, file);
            if (!isNoted) throw staleLease(lease.job_id, lease.attempt, call.query.worker_id);
          },
          onMoved: (isThere) => noteMoved(ctx.pool, lease.job_id, lease.attempt, { path, isThere }),
          onSeen: ({ sha256 }) => noteSeen(ctx.pool, lease.job_id, lease.attempt, { path, sha256 }),
        });
      },
    }),
    route({
      ...UPLOAD,
      paths: ["/worker/jobs/:job_id/checkpoints/:name"],
      operationId: "uploadCheckpoint",
      summary: "Leave a file that a later attempt goes on from",
      description:
        "The next attempt gets the newest complete one as `resume_from`; an earlier one of this attempt " +
        "is removed.",
      async handle(call) {
        const name = requirePlainPath(call.params.name ?? "");
        const lease = await requireLease(ctx, call);
        const { job_id: jobId, attempt } = lease;
        ctx.waitingRequests.park(call.request, call.principal, call.reply);
        const prefix = checkpointPrefix(jobId, attempt);
        const received = await receiveFile(ctx, call, {
          jobId,
          attempt,
          path: name,
          key: `${prefix}${name}`,
          partialName: `checkpoint-${nameOf(name)}`,
          noted: async () => notedCheckpoint(lease, name),
          onWhole: async () => void (await requireLease(ctx, call)),
        });
        if (!received.complete || received.sha256 === null) return received;
        const { sha256, received: sizeBytes } = received;
        const checkpoint = { attempt, name, size_bytes: sizeBytes, sha256 };
        if (!(await noteCheckpoint(ctx.pool, jobId, checkpoint))) {
          throw staleLease(jobId, attempt, call.query.worker_id);
        }
        const former = lease.checkpoint;
        if (former && former.name !== name) await ctx.store.remove(`${prefix}${former.name}`);
        return received;
      },
    }),
  ];
}

function requirePrefix(lease: Lease): string {
  const prefix = outputPrefix(lease);
  if (prefix === undefined) throw new InvalidRequest("the attempt makes no artifact", "path");
  return prefix;
}

function notedCheckpoint({ attempt, checkpoint }: Lease, name: string): NotedFile | undefined {
  if (checkpoint?.attempt !== attempt || checkpoint.name !== name) return undefined;
  return { sizeBytes: checkpoint.size_bytes, sha256: checkpoint.sha256, isSure: true };
}

/** One segment for a path of several. */
const nameOf = (path: string): string => createHash("sha256").update(path).digest("hex");
