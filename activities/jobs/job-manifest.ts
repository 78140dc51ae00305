import {
  describeArtifact,
  type ManifestFacts,
  type MeasuredOutput,
} from "../../core/artifacts/manifest";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import { sourceIdsOf } from "../../core/artifacts/source-references";
import { NO_USAGE } from "../../core/billing/usage";
import { ownStoreOf } from "../../platform/store/open-store";
import { findSources } from "../../services/artifacts/artifacts";
import type { BillingRow } from "../../services/billing/billing-records";
import type { Context } from "../../services/context";
import type { CompletionFacts } from "../../services/jobs/complete-job";
import { listReusedBefore } from "../../services/pipelines/pipeline-steps";

/**
 * The manifest of a completed job's artifact. The cost and the billed usage are from the job's
 * bill.
 */
export async function makeManifest(
  ctx: Context,
  facts: CompletionFacts,
  bill: BillingRow,
  { files, table }: MeasuredOutput,
): Promise<Manifest> {
  const sources = sourceIdsOf(facts.payload, facts.params, ownStoreOf(ctx.config.store));
  return describeArtifact({
    artifactId: facts.artifact_id,
    storageId: facts.storage_id,
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
    metrics: { ...facts.worker_metrics, ...billedNumbers(bill) },
    notes: facts.notes,
    costUsd: bill.total_cost_usd,
    sourceArtifacts: await findSources(ctx.pool, facts.user_id, sources),
    files: files.map(({ path, sizeBytes, sha256 }) => ({ path, size_bytes: sizeBytes, sha256 })),
    pipeline: await placeInPipeline(ctx, facts),
    table,
  });
}

/** Billed usage, with the field names that workers use. */
const billedNumbers = ({ metrics }: BillingRow): Record<string, number> =>
  Object.fromEntries(
    Object.keys(NO_USAGE).map((field) => [field, metrics[field as keyof typeof NO_USAGE]]),
  );

/**
 * Describes the job's place in its pipeline: its step, and the earlier steps that reused an
 * artifact. Null if the job has no pipeline.
 */
async function placeInPipeline(
  { pool }: Context,
  { pipeline_id: pipelineId, pipeline_step: step }: CompletionFacts,
): Promise<ManifestFacts["pipeline"]> {
  if (pipelineId === null || step === null) return null;
  const reused = await listReusedBefore(pool, pipelineId, step);
  return { pipeline_id: pipelineId, step, reused };
}
