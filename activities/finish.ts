import { artifactPrefix, billingRecordKey, MANIFEST_FILE } from "../core/artifacts";
import { runPrefix, uploadPrefix } from "../core/attempt-files";
import { presentBillingRecord } from "../core/billing-record";
import { buildManifest, type Manifest } from "../core/manifest";
import type { Context } from "../infra/context";
import {
  type CompletionFacts,
  completeJob,
  findCompletionFacts,
} from "../infra/database/completion";
import { putJson, type StoredObject } from "../infra/store/object-store";
import { billJob } from "./billing";
import { type AttemptInput, activityLogger } from "./context";

export function createFinalActivities(ctx: Context) {
  return {
    /**
     * Bills the job; then writes the billing file and the manifest beside the artifact; then, in one
     * statement, the registry entry and `completed`: whoever sees `completed` finds all of them.
     * Idempotent: the same facts give the same bytes, so that writing them again, or over what a
     * worker left under that name, changes nothing.
     */
    async finishJob(input: AttemptInput): Promise<void> {
      const { jobId, attempt } = input;
      await billJob(ctx, input);
      const facts = await findCompletionFacts(ctx.pool, jobId, attempt);
      if (!facts) throw new Error(`attempt ${attempt} of ${jobId} is not ready to be finished`);
      if (facts.status === "completed") return;
      const artifactId = facts.artifact_id;
      const prefix = artifactPrefix(facts.job_type, artifactId);
      const files = (await ctx.store.list(prefix)).filter((file) => file.path !== MANIFEST_FILE);
      const manifest = manifestOf(facts, files);
      await Promise.all([
        putJson(ctx.store, `${prefix}${MANIFEST_FILE}`, manifest),
        putJson(ctx.store, billingRecordKey(facts.user_id, jobId), presentBillingRecord(facts)),
      ]);
      const size = files.reduce((sum, file) => sum + file.sizeBytes, 0);
      // While `completed` is not written, a failure here is tried again; afterwards nobody would.
      await Promise.all(
        [runPrefix(jobId), uploadPrefix(jobId)].map((left) => ctx.store.removeAll(left)),
      );
      await completeJob(ctx.pool, jobId, attempt, artifactId, manifest, size);
      activityLogger(ctx, input).info({ artifact_id: artifactId }, "job completed");
    },
  };
}

function manifestOf(facts: CompletionFacts, files: StoredObject[]): Manifest {
  return buildManifest({
    artifactId: facts.artifact_id,
    jobType: facts.job_type,
    jobId: facts.job_id,
    userId: facts.user_id,
    createdBy: facts.created_by,
    createdAt: facts.ended_at.toISOString(),
    attempt: facts.attempt,
    workerId: facts.worker_id,
    payload: facts.payload,
    params: facts.params,
    result: facts.result,
    metrics: { ...facts.usage, ...facts.worker_metrics },
    notes: facts.notes,
    costUsd: facts.total_cost_usd,
    files: files.map((file) => ({
      path: file.path,
      size_bytes: file.sizeBytes,
      sha256: file.sha256,
    })),
  });
}
