import { isDeepStrictEqual } from "node:util";
import {
  ARTIFACT_FORMS,
  artifactPrefix,
  billingRecordKey,
  MANIFEST_FILE,
} from "../../core/artifacts/artifacts";
import {
  describeArtifact,
  type ManifestFacts,
  type MeasuredTable,
} from "../../core/artifacts/manifest";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import { sourceIdsOf } from "../../core/artifacts/references";
import { NO_USAGE } from "../../core/billing/usage";
import type { JobEnd } from "../../core/jobs/workflow";
import { transaction } from "../../platform/postgres/transaction";
import { putJson } from "../../platform/store/object-store";
import { ownStoreOf } from "../../platform/store/open-store";
import { measureArtifact } from "../../platform/tables/stored-table";
import { findManifest, findSources } from "../../services/artifacts/artifacts";
import { type BillingRow, findBillingRecord } from "../../services/billing/billing-records";
import type { Context } from "../../services/context";
import {
  type CompletionFacts,
  completeDeployJob,
  completeJob,
  completePlacementJob,
  findCompletionFacts,
} from "../../services/jobs/completion";
import { findJob } from "../../services/jobs/jobs";
import { listReusedBefore } from "../../services/pipelines/pipeline-steps";
import { billJob, fileRecord, requireBillable } from "../billing/billing";
import { type AttemptInput, activityLogger, gone, whileAlive } from "../context";
import { measureFiles, type OutputFile, promoteOutput, uploadedFiles } from "./output-files";

export function createFinalActivities(ctx: Context) {
  return {
    /**
     * Measures what the job has left, and bills it; then writes the billing file and the manifest beside
     * the artifact; then, in one statement, the registry entry and `completed`: whoever sees `completed`
     * finds all of them.
     * One that an operator has ended meanwhile stays so.
     * Idempotent: the same facts give the same bytes, so that writing them again, or over what a
     * worker left under that name, changes nothing.
     */
    async finishJob(input: AttemptInput): Promise<JobEnd> {
      return (await finishCompleted(ctx, input)) ?? (await finishPlacement(ctx, input));
    },
  };
}

/** The same; undefined where the attempt has not completed, and of a job that placed a deployment again. */
export async function finishCompleted(
  ctx: Context,
  input: AttemptInput,
): Promise<JobEnd | undefined> {
  const { jobId, attempt } = input;
  const facts = await findCompletionFacts(ctx.pool, jobId, attempt);
  if (!facts) return undefined;
  if (facts.status === "failed") return await endOf(ctx, jobId);
  if (facts.status === "completed") return { status: "completed" };
  const prefix = artifactPrefix(facts.job_type, facts.storage_id);
  const { metrics } = ctx;
  const gathering = whileAlive((signal) => gather(ctx, facts, prefix, signal));
  const { files, table } = await metrics.finishing("files", gathering);
  const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
  const rows = table?.isRead ? table.numRows : null;
  const bill = await metrics.finishing(
    "bill",
    billJob(ctx, input, facts, { storedBytes: sizeBytes, rows }),
  );
  const describing = describe(ctx, facts, bill, files, table);
  const manifest = await metrics.finishing("manifest", describing);
  const stored = Promise.all([
    putJson(ctx.store, `${prefix}${MANIFEST_FILE}`, manifest),
    fileRecord(ctx, bill),
  ]);
  await metrics.finishing("store", stored);
  const { artifact_id: artifactId, storage_id: storageId, worker_id: workerId } = facts;
  const made = { jobId, attempt, storageId, manifest, sizeBytes };
  const isDeploy = facts.job_type === "deploy";
  const completing = isDeploy
    ? ctx.clockWatch.transaction((db) => completeDeployJob(db, { ...made, workerId }))
    : completeJob(ctx.pool, made);
  const completed = await metrics.finishing("complete", completing);
  if (!completed) {
    await fileRegistered(ctx, storageId, prefix);
    return await endOf(ctx, jobId);
  }
  if (isDeploy) ctx.signals.emit("deployment", storageId);
  const { total_cost_usd } = bill;
  activityLogger(ctx, input).info({ artifact_id: artifactId, total_cost_usd }, "job completed");
  return { status: "completed" };
}

/**
 * After a manifest was written of a job that another run of this has completed: that may have been replaced
 * since, or deleted. What the registry says is written again until the two agree.
 */
async function fileRegistered(
  { pool, store }: Pick<Context, "pool" | "store">,
  storageId: string,
  prefix: string,
): Promise<void> {
  const key = `${prefix}${MANIFEST_FILE}`;
  for (let filed: Manifest | undefined; ; ) {
    const registered = await findManifest(pool, storageId);
    if (!registered) return;
    if (registered.deleted_at !== null) return await store.remove(key);
    if (isDeepStrictEqual(registered.manifest, filed)) return;
    await putJson(store, key, registered.manifest);
    filed = registered.manifest;
  }
}

/** Of a job that another run of this, or an operator, has ended meanwhile. */
async function endOf(ctx: Context, jobId: string): Promise<JobEnd> {
  const job = await findJob(ctx.pool, jobId, null);
  if (job?.status === "completed") return { status: "completed" };
  if (job?.status === "failed") {
    // The bill that an operator took back: its file may have been written after that.
    if (!(await findBillingRecord(ctx.pool, jobId, null))) {
      await ctx.store.remove(billingRecordKey(job.user_id, jobId));
    }
    return { status: "failed", code: job.error_code ?? "job_error" };
  }
  throw new Error(`${jobId} is not ready to be finished`);
}

/** Of a job that placed a deployment again: it has a bill of nothing, and no artifact of its own. */
async function finishPlacement(ctx: Context, input: AttemptInput): Promise<JobEnd> {
  const { jobId, attempt } = input;
  const job = await findJob(ctx.pool, jobId, null);
  if (!job) throw gone(`job ${jobId}`);
  if (job.status === "failed") return await endOf(ctx, jobId);
  const { deployment_id: deploymentId } = job;
  // An outcome is committed before anybody is told of it.
  if (!deploymentId) throw gone(`the end of attempt ${attempt} of ${jobId}`);
  await fileRecord(ctx, await billJob(ctx, input, await requireBillable(ctx, input)));
  const made = { jobId, attempt, deploymentId };
  const completed = await transaction(ctx.pool, (db) => completePlacementJob(db, made));
  if (!completed) return await endOf(ctx, jobId);
  ctx.signals.emit("deployment", deploymentId);
  activityLogger(ctx, input).info({ deployment_id: deploymentId }, "placed again");
  return { status: "completed" };
}

/** What the winning attempt has left in the artifact's own folder, measured. */
async function gather(
  ctx: Context,
  facts: CompletionFacts,
  prefix: string,
  signal: AbortSignal,
): Promise<{ files: OutputFile[]; table: MeasuredTable | null }> {
  const uploaded = uploadedFiles(facts);
  const minted = facts.output_ids[ARTIFACT_FORMS[facts.job_type].idField];
  if (minted !== undefined) {
    await promoteOutput(ctx.store, artifactPrefix(facts.job_type, minted), prefix);
  }
  const files = await measureFiles(ctx.store, uploaded, prefix, signal);
  const isDataset = ARTIFACT_FORMS[facts.job_type].type === "dataset";
  const stored = { tenant: facts.user_id, prefix, files };
  return { files, table: isDataset ? await measureArtifact(ctx.tables, stored, signal) : null };
}

async function describe(
  ctx: Context,
  facts: CompletionFacts,
  bill: BillingRow,
  files: OutputFile[],
  table: MeasuredTable | null,
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

/** Usage as it was billed, by the names that workers use. */
const billedNumbers = ({ metrics }: BillingRow): Record<string, number> =>
  Object.fromEntries(
    Object.keys(NO_USAGE).map((field) => [field, metrics[field as keyof typeof NO_USAGE]]),
  );

/** Which step it is, and what that stands on that was not made anew. */
async function placeInPipeline(
  { pool }: Context,
  { pipeline_id: pipelineId, pipeline_step: step }: CompletionFacts,
): Promise<ManifestFacts["pipeline"]> {
  if (pipelineId === null || step === null) return null;
  const reused = await listReusedBefore(pool, pipelineId, step);
  return { pipeline_id: pipelineId, step, reused };
}
