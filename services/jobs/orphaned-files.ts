import type { JobType } from "../../core/jobs/job-types";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ALL_ATTEMPTS, ALL_JOBS } from "./all-jobs";
import type { EndedJob } from "./archive";

/** An ended job whose attempts may have left files that belong to no artifact. */
export interface SweepableJob extends EndedJob {
  user_id: string;
  job_type: JobType;
  /** The id of the job's artifact folder; null if the job has no artifact. */
  storage_id: string | null;
  /**
   * Artifact ids that were generated for the job's attempts, or chosen by a worker, and that no
   * registered artifact has.
   */
  orphaned_ids: string[];
}

/**
 * Jobs that ended more than `afterS` seconds ago and whose orphaned files were not removed (swept)
 * yet, oldest first.
 *
 * @param after only jobs after this one, so that a job that can't be swept does not block the
 *   others.
 */
export async function listJobsToSweep(
  db: Queryable,
  afterS: number,
  after: SweepableJob | undefined,
  limit: number,
) {
  return await all<SweepableJob>(
    db,
    `select j.job_id, j.user_id, j.job_type, j.completed_at::text as ended_at,
            (select artifact_id from artifacts r
             where r.job_id = j.job_id and r.registered_at is not null) as storage_id,
            array(select id from ${ALL_ATTEMPTS} a cross join jsonb_each_text(a.output_ids) as minted (field, id)
                  where a.job_id = j.job_id
                    and not exists (select from artifacts r where r.artifact_id = id)
                  union
                  select artifact_id from artifacts r
                  where r.job_id = j.job_id and r.registered_at is null) as orphaned_ids
     from ${ALL_JOBS} j
     where j.swept_at is null and j.completed_at < now() - make_interval(secs => $1)
       and ($2::text is null or (j.completed_at, j.job_id) > ($2::timestamptz, $3::text))
     order by j.completed_at, j.job_id limit $4`,
    [afterS, after?.ended_at ?? null, after?.job_id ?? null, limit],
  );
}

/**
 * Whether the job still has the end time `ended_at`. If the database was restored while this
 * process was paused, the job may run again, or may have ended a second time.
 */
export async function hasSameEnd(db: Queryable, job: EndedJob): Promise<boolean> {
  const same = `select from ${ALL_JOBS} jobs where job_id = $1 and completed_at = $2`;
  const row = await maybeOne(db, same, [job.job_id, job.ended_at]);
  return row !== undefined;
}

/**
 * Records that the job's orphaned folders were removed, and frees their ids (those of an archived
 * job are free already). Does nothing if `hasSameEnd` is false for the job.
 */
export async function markSwept(db: Queryable, job: EndedJob): Promise<void> {
  await execute(
    db,
    `with swept as (
       update jobs set swept_at = now() where job_id = $1 and completed_at = $2 returning job_id),
     -- Operators can request another sweep of an archived job, after files were lost.
     swept_again as (
       update archived_jobs set swept_at = now() where job_id = $1 and completed_at = $2)
     delete from artifacts r using swept where r.job_id = swept.job_id and r.registered_at is null`,
    [job.job_id, job.ended_at],
  );
}
