import type { TenantScope } from "../../core/accounts/permissions";
import type { JobType } from "../../core/jobs/job-types";
import type { WaitingJob } from "../../core/jobs/pending-reason";
import type { ErrorCode, JobStatus } from "../../core/jobs/states";
import { Where } from "../../platform/postgres/pages";
import { all, type Queryable } from "../../platform/postgres/pool";
import { requirementGroupRange } from "../accounts/quotas";
import { QUEUE_ORDER } from "../fleet/assignment-sql";
import { ALL_JOBS } from "./all-jobs";

export interface JobCount {
  job_type: JobType;
  status: JobStatus;
  error_code: ErrorCode | null;
  jobs: number;
}

/** Counts jobs by type and status: all unfinished ones, and those that ended after `endedAfter`. */
export async function countJobs(
  db: Queryable,
  tenantScope: TenantScope,
  endedAfter: string,
): Promise<JobCount[]> {
  const open = new Where().inTenantScope(tenantScope).and("status not in ('completed', 'failed')");
  // The statement below contains both conditions, but has only one list of parameters:
  // `ended.values`. It fits `open` too, because it starts with the parameters of `open`.
  const ended = new Where().inTenantScope(tenantScope).and("completed_at is not null");
  ended.andParameter(endedAfter, (time) => `completed_at > ${time}::timestamptz`);
  return await all<JobCount>(
    db,
    `select job_type, status, null as error_code, count(*)::int as jobs
     from jobs where ${open} group by 1, 2
     union all
     select job_type, status, error_code, count(*)::int from ${ALL_JOBS} jobs where ${ended} group by 1, 2, 3`,
    ended.values,
  );
}

/**
 * The first queued job of a requirement group (the jobs of one tenant with equal requirements), and
 * the group's number of queued jobs.
 */
export interface QueueFront extends WaitingJob {
  jobs: number;
}

/** The largest requirement groups in the queue. */
export async function listQueueFronts(
  db: Queryable,
  tenantScope: TenantScope,
  limit: number,
): Promise<QueueFront[]> {
  const range = tenantScope === null ? undefined : requirementGroupRange(tenantScope);
  return await all<QueueFront>(
    db,
    `select groups.jobs, j.job_id as "jobId", j.user_id as "userId", j.priority,
            extract(epoch from front.queued_at)::float8 as "queuedAt", j.job_type as "jobType",
            j.req_gpu_count as "gpuCount", j.req_gpu_tokens as "gpuTokens",
            j.req_memory_gb as "memoryGb", j.req_tags as tags, j.req_avoid as avoid
     from (select shape, count(*)::int as jobs from attempts
           where state = 'queued'
             and ${range ? 'shape >= $2 collate "C" and shape < $3 collate "C"' : "true"}
           group by shape order by jobs desc, shape limit $1) groups
     cross join lateral (
       select job_id, queued_at from attempts
       where state = 'queued' and shape = groups.shape
       order by ${QUEUE_ORDER} limit 1) front
     join jobs j using (job_id)`,
    [limit, ...(range ?? [])],
  );
}
