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
     * A job that an operator has ended stays ended. Idempotent: a retry writes the same bytes.
     */
    async finishJob(input: AttemptInput): Promise<JobEnd> {
      return (await finishCompleted(ctx, input)) ?? (await finishPlacement(ctx, input));
    },
  };
}

/**
 * Makes the final writes of a completed job (see `finishJob`). Returns undefined, and writes
 * nothing, if the attempt has not completed, if the job is archived, or if the job adds a placement
 * to an existing deployment.
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
  const measured = await metrics.timeFinalWrite("files", measuring);
  const billing = billJob(ctx, input, facts, measured);
  const { record: bill, isNew } = await metrics.timeFinalWrite("bill", billing);
  // If another run of this activity has written the bill, read `facts` again. The database may have
  // been restored after the first read, and the attempt may have ended again with another result.
  // The bill then belongs to the new result.
  if (!isNew) facts = await read();
  if (!facts) {
    throw new Error(`the database no longer has the outcome of attempt ${attempt} of ${jobId}`);
  }
  // Prefer the measurement that was stored with the bill, because the bill is based on it.
  // `facts.measured` is null in three cases:
  // - this run wrote the bill after it had read `facts`;
  // - an earlier release wrote the bill;
  // - the job has completed, which deletes the stored measurement.
  const output = facts.measured ?? measured;
  const prefix = prefixOf(facts);
  const manifest = await metrics.timeFinalWrite("manifest", makeManifest(ctx, facts, bill, output));
  const stored = Promise.all([putManifestFile(ctx, prefix, manifest), putRecordFile(ctx, bill)]);
  await metrics.timeFinalWrite("store", stored);
  const { artifact_id, storage_id: storageId } = facts;
  const { version } = bill;
  const made = { jobId, attempt, version, storageId, manifest, sizeBytes: sizeOf(output) };
  const { completion } = declarationOf(facts.job_type);
  const completing =
    completion === "deployment"
      ? ctx.clockWatch.transaction((db) => completeDeployJob(db, made))
      : completeJob(ctx.pool, made);
  const completed = await metrics.timeFinalWrite("complete", completing);
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
 * Returns the end of a job that something else has ended: another run of the activity, an operator,
 * or a cancel (possible only if the database has lost the attempt's result). If the job has failed,
 * bills it, because the workflow then ends without calling `failJob`, which usually does this.
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

/**
 * Finishes a job that added a placement to an existing deployment. Its bill is 0 USD, and it has no
 * artifact.
 */
async function finishPlacement(ctx: Context, input: AttemptInput): Promise<JobEnd> {
  const { jobId, attempt } = input;
  const job = await requireJob(ctx.pool, jobId);
  if (job.status === "failed") return await endOf(ctx, jobId);
  const { deployment_id: deploymentId } = job;
  // The job has completed and is archived. `finishCompleted` does not read archived jobs.
  if (job.status === "completed" && !deploymentId) return { status: "completed" };
  const state = await findAttemptState(ctx.pool, jobId, attempt);
  // The workflow calls this only for a completed attempt. An outcome is committed before the
  // workflow is notified. So if the outcome is missing, the database has lost it.
  if (state?.outcome !== "completed") {
    throw databaseBehind(`the end of attempt ${attempt} of ${jobId}`);
  }
  // A job without `deployment_id` has an artifact, and `finishCompleted` should have finished the
  // job. `finishCompleted` returned undefined, so the artifact's row is missing. Restarting the
  // workflow would not restore the row. So this activity keeps failing until an operator ends the
  // job.
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
  // A local activity needs no measuring slot: it holds no activity slot, and Temporal aborts it
  // after five seconds (workflows/activity-proxies.ts).
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
  const generatedId = facts.output_ids[idField];
  if (generatedId !== undefined) {
    await promoteOutput(ctx.store, artifactPrefix(facts.job_type, generatedId), prefix);
  }
  const files = await measureFiles(ctx.store, uploaded, prefix, signal);
  if (type !== "dataset") return { files, table: null };
  const stored = { tenant: facts.user_id, prefix, files };
  return { files, table: await measureArtifact(ctx.tables, stored, signal) };
}
