import type { Manifest } from "../../core/artifacts/manifest-schema";
import type { JobStatus } from "../../core/jobs/states";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ARTIFACTS } from "../artifacts/artifacts";
import { BILLABLE, type BillableRow } from "../billing/billing-records";
import { insertDeployment, lockDeployment, noteServed } from "../deployments/deployments";
import { insertPlacement, servePlacement } from "../deployments/placements";
import { lockWorker } from "../fleet/workers";
import { ATTEMPT_FILES, type AttemptFile } from "./attempt-files";

/** All that a job's last writes are made of: the job, its attempts, the winning one, its artifact and its files. */
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
  /** Of its folder, its row and its deployment. */
  storage_id: string;
  /** Ids minted for this attempt's artifacts, by the result's field. */
  output_ids: Record<string, string>;
  /** What came through us. */
  uploaded: AttemptFile[];
}

/** Undefined until the attempt has completed, and for a job that places a deployment again. */
export async function findCompletionFacts(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<CompletionFacts | undefined> {
  return await maybeOne<CompletionFacts>(
    db,
    `select ${BILLABLE}, j.job_id, j.status, j.created_by, j.notes, j.pipeline_id, j.pipeline_step,
            a.attempt, a.worker_id, a.ended_at, a.result, a.metrics as worker_metrics, a.output_ids,
            r.artifact_id, r.storage_id, ${ATTEMPT_FILES} as uploaded
     from jobs j join attempts a using (job_id) join ${ARTIFACTS} r using (job_id)
     where j.job_id = $1 and a.attempt = $2 and a.outcome = 'completed' and j.deployment_id is null`,
    [jobId, attempt],
  );
}

/** What was made, and by which attempt. */
export interface Made {
  jobId: string;
  attempt: number;
  storageId: string;
  manifest: Manifest;
  sizeBytes: number;
}

/**
 * The last write of a job that succeeded, in one statement: the registry entry, `completed` with the
 * winning attempt's answer, and nothing owed to Temporal any more. Done twice it changes nothing.
 */
export async function completeJob(
  db: Queryable,
  { jobId, attempt, storageId, manifest, sizeBytes }: Made,
): Promise<boolean> {
  const row = await maybeOne(
    db,
    `with completed as (
       update jobs j set status = 'completed', completed_at = now(), progress = 1,
              result = a.result, worker_id = a.worker_id, artifacts_uri = a.artifacts_uri,
              logs_uri = coalesce(a.logs_uri, j.logs_uri)
       from attempts a
       where j.job_id = $1 and a.job_id = j.job_id and a.attempt = $2 and a.outcome = 'completed'
         and j.status = any('{pending,assigned,running}')
       returning j.job_id),
     settled as (delete from outbox using completed where outbox.job_id = completed.job_id)
     update artifacts r set manifest = $4, size_bytes = $5, registered_at = now(),
            created_at = ($4::jsonb->>'created_at')::timestamptz,
            source_jobs = array(select jsonb_array_elements_text($4::jsonb->'source_jobs')),
            source_artifacts = array(select jsonb_array_elements_text($4::jsonb->'source_artifacts'))
     from completed
     where r.artifact_id = $3 and r.job_id = completed.job_id
     returning r.artifact_id`,
    [jobId, attempt, storageId, manifest, sizeBytes],
  );
  return row !== undefined;
}

/** The same of a deploy job, with its deployment and the first placement of that. Call in a transaction. */
export async function completeDeployJob(
  db: Queryable,
  made: Made & { workerId: string },
): Promise<boolean> {
  const { jobId, attempt, storageId: deploymentId } = made;
  if (!(await completeJob(db, made))) return false;
  await lockWorker(db, made.workerId);
  await insertDeployment(db, deploymentId, jobId, attempt);
  await insertPlacement(db, deploymentId, 1, jobId);
  await servePlacement(db, jobId, attempt);
  return true;
}

/** The last write of a job that placed a deployment again: it leaves a server, and no artifact. */
export async function completePlacementJob(
  db: Queryable,
  { jobId, attempt, deploymentId }: { jobId: string; attempt: number; deploymentId: string },
): Promise<boolean> {
  const completed = await maybeOne<{ worker_id: string }>(
    db,
    `with completed as (
       update jobs j set status = 'completed', completed_at = now(), progress = 1,
              result = a.result, worker_id = a.worker_id, artifacts_uri = null, logs_uri = coalesce(a.logs_uri, j.logs_uri)
       from attempts a
       where j.job_id = $1 and a.job_id = j.job_id and a.attempt = $2 and a.outcome = 'completed'
         and j.status = any('{pending,assigned,running}')
       returning j.job_id, j.worker_id),
     settled as (delete from outbox using completed where outbox.job_id = completed.job_id)
     select worker_id from completed`,
    [jobId, attempt],
  );
  if (!completed) return false;
  await lockWorker(db, completed.worker_id);
  await lockDeployment(db, deploymentId);
  await servePlacement(db, jobId, attempt);
  await noteServed(db, deploymentId);
  return true;
}
