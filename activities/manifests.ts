import { artifactPrefix, billingRecordKey } from "../core/artifacts";
import { presentBillingRecord } from "../core/billing-record";
import { buildManifest, type Manifest } from "../core/manifest";
import type { Context } from "../infra/context";
import { findReserved, registerArtifact } from "../infra/database/artifacts";
import { findAttempt } from "../infra/database/attempts";
import { findBillingRecord } from "../infra/database/billing";
import { completeJob, findJob } from "../infra/database/jobs";
import { settleAllDebts } from "../infra/database/outbox";
import { transaction } from "../infra/database/transaction";
import type { StoredObject } from "../infra/store/object-store";
import type { AttemptInput } from "./attempts";
import { activityLogger } from "./context";

const MANIFEST = "manifest.json";

export function createManifestActivities(ctx: Context) {
  return {
    /**
     * Writes the billing file and the manifest beside the artifact, then, in one transaction, the
     * registry entry and `completed`: whoever sees `completed` finds all of them. Idempotent, because
     * a file that is there already stays, and its text is what the registry gets.
     */
    async finishJob(input: AttemptInput): Promise<void> {
      const { jobId, attempt } = input;
      const [job, won, bill, reserved] = await Promise.all([
        findJob(ctx.pool, jobId, null),
        findAttempt(ctx.pool, jobId, attempt),
        findBillingRecord(ctx.pool, jobId, null),
        findReserved(ctx.pool, jobId),
      ]);
      if (job?.status === "completed") return;
      if (!job || !bill || !reserved || won?.outcome !== "completed") {
        throw new Error(`attempt ${attempt} of ${jobId} is not ready to be finished`);
      }
      const prefix = artifactPrefix(job.job_type, reserved.artifact_id);
      const files = (await ctx.store.list(prefix)).filter((file) => file.path !== MANIFEST);
      const built = buildManifest({
        artifactId: reserved.artifact_id,
        jobType: job.job_type,
        jobId,
        userId: job.user_id,
        createdBy: job.created_by,
        createdAt: (won.ended_at ?? bill.created_at).toISOString(),
        attempt,
        workerId: won.worker_id ?? "",
        payload: job.payload,
        params: job.params,
        result: won.result ?? {},
        metrics: { ...won.usage, ...won.metrics },
        notes: job.notes,
        costUsd: bill.total_cost_usd,
        files: files.map(manifestFile),
      });
      const [manifest] = await Promise.all([
        writeJson(ctx, `${prefix}${MANIFEST}`, built),
        writeJson(ctx, billingRecordKey(job.user_id, jobId), presentBillingRecord(bill)),
      ]);
      const size = files.reduce((sum, file) => sum + file.sizeBytes, 0);
      await transaction(ctx.pool, async (db) => {
        await completeJob(db, jobId, attempt);
        await registerArtifact(db, reserved.artifact_id, manifest, size);
        await settleAllDebts(db, jobId);
      });
      activityLogger(ctx, input).info({ artifact_id: reserved.artifact_id }, "job completed");
    },
  };
}

async function writeJson(
  ctx: Context,
  key: string,
  value: Record<string, unknown>,
): Promise<Manifest> {
  const stored = await ctx.store.putIfAbsent(
    key,
    Buffer.from(`${JSON.stringify(value, null, 2)}\n`),
  );
  return JSON.parse(stored.toString("utf8")) as Manifest;
}

function manifestFile(file: StoredObject) {
  return { path: file.path, size_bytes: file.sizeBytes, sha256: file.sha256 };
}
