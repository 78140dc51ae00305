import { Context as ActivityContext } from "@temporalio/activity";
import { ARTIFACT_FORMS, artifactPrefix } from "../../core/artifacts/artifacts";
import type { MeasuredOutput } from "../../core/artifacts/manifest";
import { declarationOf } from "../../core/jobs/job-types";
import { type JobEnd, jobEndOf } from "../../core/jobs/workflow";
import { transaction } from "../../platform/postgres/transaction";
import { measureArtifact } from "../../platform/tables/stored-table";
import { putManifestFile, syncManifestFile } from "../../services/artifacts/manifest-file";
import { putRecordFile, syncRecordFile } from "../../services/billing/record-file";
import type { Context } from "../../services/context";
import { findAttemptState } from "../../services/jobs/attempts";
import {
  type CompletionFacts,
  completeDeployJob,
  completeJob,
  completePlacementJob,
  findCompletionFacts,
} from "../../services/jobs/complete-job";
import { findJob } from "../../services/jobs/jobs";
import { billFailedJob, billJob, requireBillable, sizeOf } from "../billing/billing";
import {
  type AttemptInput,
  activityLogger,
  databaseBehind,
  notYet,
  requireJob,
  withHeartbeats,
} from "../context";
import { makeManifest } from "./job-manifest";
import { measureFiles, promoteOutput, uploadedFiles } from "./output-files";

export function createFinalActivities(ctx: Context) {
  return {
    /**
     * The final writes of a completed job, in this order:
     *
     * 1. measure its output files and write its bill;
     * 2. store the billing file and the manifest;
     * 3. in one SQL statement, insert the registry entry and set `completed`, so that a reader who
     *    sees `completed` finds everything else.
     *
     * A job that an operator has ended stays ended. Idempotent: the same facts give the same bytes.
     */
    async finishJob(input: AttemptInput): Promise<JobEnd> {
      return (await finishCompleted(ctx, input)) ?? (await finishPlacement(ctx, input));
    },
  };
}

/**
 * Makes the final writes of a completed job (see `finishJob`). Returns undefined, and writes
 * nothing, if the attempt has not completed, or if the job places a deployment again.
 */
export async function finishCompleted(
  ctx: Context,
  input: AttemptInput,
): Promise<JobEnd | undefined> {
  const { jobId, attempt } = input;
  const read = () => findCompletionFacts(ctx.pool, jobId, attempt);
  let facts = await read();
  if (!facts) return undefined;
  if (facts.status === "failed") return await endOf(ctx, jobId);
  if (facts.status === "completed") return { status: "completed" };
  const { metrics } = ctx;
  const measuring = measureInSlot(ctx, facts, prefixOf(facts));
  const measured = await metrics.finishing("files", measuring);
  const billing = billJob(ctx, input, facts, measured);
  const { record: bill, isNew } = await metrics.finishing("bill", billing);
  // If another run of this activity wrote the bill, read the facts again: the database may have
  // been restored since they were read, and the bill may belong to another outcome of the attempt.
  if (!isNew) facts = await read();
  if (!facts) {
    throw new Error(`the database no longer has the outcome of attempt ${attempt} of ${jobId}`);
  }
  // Use the measurement that was stored with the bill. If `facts` has none, use the measurement of
  // this run. `facts` has none if this run wrote the bill after it had read `facts`, if an earlier
  // release wrote the bill, or if the job has completed (this deletes the stored measurement).
  const output = facts.measured ?? measured;
  const prefix = prefixOf(facts);
  const manifest = await metrics.finishing("manifest", makeManifest(ctx, facts, bill, output));
  const stored = Promise.all([putManifestFile(ctx, prefix, manifest), putRecordFile(ctx, bill)]);
  await metrics.finishing("store", stored);
  const { artifact_id, storage_id: storageId } = facts;
  const { version } = bill;
  const made = { jobId, attempt, version, storageId, manifest, sizeBytes: sizeOf(output) };
  const { completion } = declarationOf(facts.job_type);
  const completing =
    completion === "deployment"
      ? ctx.clockWatch.transaction((db) => completeDeployJob(db, made))
      : completeJob(ctx.pool, made);
  const completed = await metrics.finishing("complete", completing);
  if (!completed) {
    await syncManifestFile(ctx, storageId, prefix);
    return await endOf(ctx, jobId);
  }
  if (completion === "deployment") ctx.signals.emit("deployment", storageId);
  const { total_cost_usd } = bill;
  activityLogger(ctx, input).info({ artifact_id, total_cost_usd }, "job completed");
  return { status: "completed" };
}

/**
 * Returns how the job ended. Called if a concurrent run of this activity, an operator or a cancel
 * has ended the job. (A cancel can do so only if the database has lost the result that the workflow
 * is finishing.) Bills a failed job, because its workflow then ends without calling `failJob`.
 *
 * @throws if the job has not ended.
 */
async function endOf(ctx: Context, jobId: string): Promise<JobEnd> {
  const job = await findJob(ctx.pool, jobId, null);
  const end = job && jobEndOf(job.status, job.error_code);
  if (!job || !end) throw new Error(`job ${jobId} has not ended, but can't be finished`);
  if (end.status === "failed") await billFailedJob(ctx, jobId);
  await syncRecordFile(ctx, job);
  return end;
}

/** Finishes a job that placed a deployment again: its bill is 0 USD, and it has no artifact. */
async function finishPlacement(ctx: Context, input: AttemptInput): Promise<JobEnd> {
  const { jobId, attempt } = input;
  const job = await requireJob(ctx.pool, jobId);
  if (job.status === "failed") return await endOf(ctx, jobId);
  const { deployment_id: deploymentId } = job;
  // An earlier run of this activity has completed the job, which was archived since.
  if (job.status === "completed" && !deploymentId) return { status: "completed" };
  const state = await findAttemptState(ctx.pool, jobId, attempt);
  // The workflow calls this only for a completed attempt. Outcomes are committed before workflows
  // are notified, so if this one is missing, the database has lost it.
  if (state?.outcome !== "completed") {
    throw databaseBehind(`the end of attempt ${attempt} of ${jobId}`);
  }
  // `finishCompleted` handles every completed job that does not place a deployment again. A job
  // without `deployment_id` gets here only if the row of its artifact is missing. Starting over
  // would not restore that row, so this activity keeps failing until an operator ends the job.
  if (!deploymentId) throw new Error(`the row of the artifact of ${jobId} is missing`);
  const { record } = await billJob(ctx, input, await requireBillable(ctx, input));
  await putRecordFile(ctx, record);
  const made = { jobId, attempt, version: record.version, deploymentId };
  const completed = await transaction(ctx.pool, (db) => completePlacementJob(db, made));
  if (!completed) return await endOf(ctx, jobId);
  ctx.signals.emit("deployment", deploymentId);
  activityLogger(ctx, input).info({ deployment_id: deploymentId }, "deployment placed again");
  return { status: "completed" };
}

/**
 * Returns the stored measurement if an earlier try wrote the bill; else measures the output.
 *
 * Measuring large files takes long and holds an activity slot, which other jobs' activities need.
 * So the number of concurrent measurements is limited, for each tenant and in total. Without a free
 * measuring slot, the activity fails and is retried later.
 */
async function measureInSlot(
  ctx: Context,
  facts: CompletionFacts,
  prefix: string,
): Promise<MeasuredOutput> {
  if (facts.measured) return facts.measured;
  const work = () => withHeartbeats((signal) => measureOutput(ctx, facts, prefix, signal));
  // A local activity needs no measuring slot, because it ends after five seconds and holds no
  // activity slot.
  if (ActivityContext.current().info.isLocal) return await work();
  const measured = await ctx.measuringSlots.run(facts.user_id, work);
  if (!measured) throw notYet("other jobs' files are measured first");
  return measured;
}

const prefixOf = ({ job_type: type, storage_id: id }: CompletionFacts): string =>
  artifactPrefix(type, id);

/** Moves the winning attempt's output to the artifact's folder and measures it. */
async function measureOutput(
  ctx: Context,
  facts: CompletionFacts,
  prefix: string,
  signal: AbortSignal,
): Promise<MeasuredOutput> {
  const uploaded = uploadedFiles(facts);
  const { idField, type } = ARTIFACT_FORMS[facts.job_type];
  const minted = facts.output_ids[idField];
  if (minted !== undefined) {
    await promoteOutput(ctx.store, artifactPrefix(facts.job_type, minted), prefix);
  }
  const files = await measureFiles(ctx.store, uploaded, prefix, signal);
  if (type !== "dataset") return { files, table: null };
  const stored = { tenant: facts.user_id, prefix, files };
  return { files, table: await measureArtifact(ctx.tables, stored, signal) };
}
