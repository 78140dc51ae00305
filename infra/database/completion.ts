import type { Manifest } from "../../core/manifest";
import type { Usage } from "../../core/pricing";
import type { JobStatus } from "../../core/states";
import type { BillingRow } from "./billing";
import { maybeOne, type Queryable } from "./pool";

/** All that a job's last writes are made of: the job, its winning attempt, its bill, its artifact. */
export interface CompletionFacts extends BillingRow {
  status: JobStatus;
  created_by: string;
  payload: Record<string, unknown>;
  params: Record<string, unknown>;
  notes: string | null;
  worker_id: string;
  ended_at: Date;
  result: Record<string, unknown>;
  usage: Usage;
  worker_metrics: Record<string, unknown>;
  artifact_id: string;
}

/** Undefined until the attempt has completed and its bill is written. */
export async function findCompletionFacts(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<CompletionFacts | undefined> {
  return await maybeOne<CompletionFacts>(
    db,
    `select b.*, j.status, j.created_by, j.payload, j.params, j.notes, a.worker_id, a.ended_at,
            a.result, a.usage, a.metrics as worker_metrics, r.artifact_id
     from jobs j join attempts a using (job_id) join billing_records b using (job_id)
     join artifacts r using (job_id)
     where j.job_id = $1 and a.attempt = $2 and a.outcome = 'completed'`,
    [jobId, attempt],
  );
}

/**
 * The last write of a job that succeeded, in one statement: the registry entry, `completed` with the
 * winning attempt's answer, and nothing owed to Temporal any more. Done twice it changes nothing.
 */
export async function completeJob(
  db: Queryable,
  jobId: string,
  attempt: number,
  artifactId: string,
  manifest: Manifest,
  sizeBytes: number,
): Promise<boolean> {
  const row = await maybeOne(
    db,
    `with completed as (
       update jobs j set status = 'completed', completed_at = now(), progress = 1,
              result = a.result, worker_id = a.worker_id, artifacts_uri = a.artifacts_uri,
              logs_uri = a.logs_uri
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
    [jobId, attempt, artifactId, manifest, sizeBytes],
  );
  return row !== undefined;
}
