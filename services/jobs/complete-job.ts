import type { MeasuredOutput } from "../../core/artifacts/manifest";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import type { JobStatus } from "../../core/jobs/states";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ARTIFACTS } from "../artifacts/artifacts";
import { BILLABLE, type BillableRow } from "../billing/billing-records";
import { insertDeployment, lockDeployment, recordServing } from "../deployments/deployments";
import { insertPlacement, servePlacement } from "../deployments/placements";
import { lockWorker } from "../fleet/workers";
import { ATTEMPT_FILES, type AttemptFile } from "./attempt-files";

/** The inputs of a job's final writes: the job, its winning attempt, its artifact and its files. */
export interface CompletionFacts extends BillableRow {
  job_id: string;
  attempt: number;
  status: JobStatus;
  created_by: string;
  notes: string | null;
  pipeline_id: string | null;
  pipeline_step: string | null;
  worker_id: string;
  ended_at: Date;
  result: Record<string, unknown>;
  worker_metrics: Record<string, unknown>;
  artifact_id: string;
  /**
   * The id of the artifact's folder and of its row in `artifacts`. For a deploy job, this is also
   * the id of the deployment. Differs from `artifact_id` if the worker chose an id whose folder
   * belongs to another tenant.
   */
  storage_id: string;
  /** Ids generated for this attempt's artifacts, by field of the result. */
  output_ids: Record<string, string>;
  /** Files that the worker uploaded through the API. */
  uploaded: AttemptFile[];
  /**
   * The measurement from which the bill was made. Null before the bill is written. Null again after
   * the job has completed, because completion deletes the measurement.
   */
  measured: MeasuredOutput | null;
}

/**
 * Reads the inputs of a job's final writes. Undefined if the attempt has not completed, if the job
 * is archived, or if it is a placement job. A placement job starts another server of an existing
 * deployment and makes no artifact.
 */
export async function findCompletionFacts(db: Queryable, jobId: string, attempt: number) {
  return await maybeOne<CompletionFacts>(
    db,
    `select ${BILLABLE}, j.job_id, j.status, j.created_by, j.notes, j.pipeline_id, j.pipeline_step,
            a.attempt, a.worker_id, a.ended_at, a.result, a.metrics as worker_metrics, a.output_ids,
            r.artifact_id, r.storage_id, ${ATTEMPT_FILES} as uploaded,
            (select measured from artifacts where artifact_id = r.storage_id) as measured
     from jobs j join attempts a using (job_id) join ${ARTIFACTS} r using (job_id)
     where j.job_id = $1 and a.attempt = $2 and a.outcome = 'completed' and j.deployment_id is null`,
    [jobId, attempt],
  );
}

/** The attempt that won, and the artifact that it made. */
export interface JobOutput extends WinningAttempt {
  storageId: string;
  manifest: Manifest;
  sizeBytes: number;
}

interface WinningAttempt {
  jobId: string;
  attempt: number;
  /** Version of the billing record from which the manifest was made. */
  version: string | null;
}

/**
 * The last write of a job that succeeded, in one statement: sets `completed` with the winning
 * attempt's result, registers the artifact if there is one, and removes the outbox entries.
 * Idempotent.
 *
 * @returns the worker of the winning attempt. Undefined if the job had ended before, or if the
 *   database was restored and no longer has the bill from which the manifest was made.
 */
async function writeCompletion(
  db: Queryable,
  { jobId, attempt, version }: WinningAttempt,
  output: Omit<JobOutput, keyof WinningAttempt> | null,
): Promise<string | undefined> {
  const row = await maybeOne<{ worker_id: string }>(
    db,
    `with completed as (
       update jobs j set status = 'completed', completed_at = now(), progress = 1,
              result = a.result, worker_id = a.worker_id,
              artifacts_uri = case when $3::text is not null then a.artifacts_uri end,
              logs_uri = coalesce(a.logs_uri, j.logs_uri)
       from attempts a
       where j.job_id = $1 and a.job_id = j.job_id and a.attempt = $2 and a.outcome = 'completed'
         and j.status = any('{pending,assigned,running}')
         and exists (
           select from billing_records b where b.job_id = j.job_id and b.version is not distinct from $6)
       returning j.job_id, j.worker_id),
     delivered as (delete from outbox using completed where outbox.job_id = completed.job_id),
     registered as (
       update artifacts r set manifest = $4, size_bytes = $5, registered_at = now(), measured = null,
              created_at = ($4::jsonb->>'created_at')::timestamptz,
              source_jobs = array(select jsonb_array_elements_text($4::jsonb->'source_jobs')),
              source_artifacts = array(select jsonb_array_elements_text($4::jsonb->'source_artifacts'))
       from completed
       where r.artifact_id = $3 and r.job_id = completed.job_id
       returning r.artifact_id)
     select worker_id from completed where $3::text is null or exists (select from registered)`,
    [jobId, attempt, output?.storageId, output?.manifest, output?.sizeBytes, version],
  );
  return row?.worker_id;
}

/** Completes a job that made an artifact. */
export const completeJob = async (db: Queryable, output: JobOutput): Promise<boolean> =>
  (await writeCompletion(db, output, output)) !== undefined;

/**
 * Completes a deploy job and inserts its deployment and the first placement. Call in a transaction.
 */
export async function completeDeployJob(db: Queryable, output: JobOutput): Promise<boolean> {
  const { jobId, attempt, storageId: deploymentId } = output;
  const workerId = await writeCompletion(db, output, output);
  if (workerId === undefined) return false;
  await lockWorker(db, workerId);
  await insertDeployment(db, deploymentId, jobId, attempt);
  await insertPlacement(db, deploymentId, 1, jobId);
  await servePlacement(db, jobId, attempt);
  return true;
}

/**
 * Completes a placement job: it has started another server of an existing deployment and makes no
 * artifact. Call in a transaction.
 */
export async function completePlacementJob(
  db: Queryable,
  won: WinningAttempt & { deploymentId: string },
): Promise<boolean> {
  const workerId = await writeCompletion(db, won, null);
  if (workerId === undefined) return false;
  await lockWorker(db, workerId);
  await lockDeployment(db, won.deploymentId);
  await servePlacement(db, won.jobId, won.attempt);
  await recordServing(db, won.deploymentId);
  return true;
}
