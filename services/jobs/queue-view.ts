import type { FleetMember } from "../../core/jobs/pending-reason";
import type { Queue, QueuedGroup } from "../../core/jobs/queue-position";
import { all, type Queryable } from "../../platform/postgres/pool";
import { rowFilter } from "../../platform/postgres/row-filter";
import { QUEUE_ORDER } from "../fleet/assignment-sql";

/** All workers of the fleet, as the scheduler sees them. */
export async function readFleet(db: Queryable) {
  return await all<FleetMember>(
    db,
    `select w.worker_id as "workerId", w.user_id as "userId", w.shared, w.tenants,
            w.job_types as "jobTypes", w.gpu_count as "gpuCount",
            w.gpu_tokens as "gpuTokens", w.gpu_memory_gb as "memoryGb", w.tags,
            w.gpu_name as "gpuName", w.status, w.status_reason as "statusReason", w.draining,
            coalesce(w.available_until > now(), false) as polls, a.shared_for as serves
     from workers w left join attempts a
       on a.worker_id = w.worker_id and a.state in ('assigned', 'running')
     where w.decommissioned_at is null`,
  );
}

/**
 * `readQueue` reads up to GROUPS requirement groups, and returns up to JOBS + 1 jobs of each group.
 * Job number JOBS + 1 shows that the group has more than JOBS jobs.
 */
const JOBS = 100;
const GROUPS = 200;

/**
 * The front of the queue, by requirement group (the jobs of one tenant with equal requirements).
 * The limits bound the cost for a queue of any length.
 */
export async function readQueue(db: Queryable): Promise<Queue> {
  const groups = await all<QueuedGroup>(
    db,
    `with recursive groups (shape, n) as (
       (select shape, 1 from attempts where state = 'queued' order by shape limit 1)
       union all
       select (select a.shape from attempts a where a.state = 'queued' and a.shape > s.shape
               order by a.shape limit 1), s.n + 1
       from groups s where s.shape is not null and s.n < ${GROUPS})
     select j.user_id as "userId", j.job_type as "jobType", j.req_gpu_count as "gpuCount", j.req_gpu_tokens as "gpuTokens",
            j.req_memory_gb as "memoryGb", j.req_tags as tags,
            j.req_avoid as avoid, front.jobs, front.has_more as "hasMore"
     from groups s, lateral (
       select min(job_id) as any_job_id, count(*) > ${JOBS} as has_more,
              (json_agg(json_build_object('jobId', job_id, 'priority', priority,
                 'queuedAt', extract(epoch from queued_at)) order by ${QUEUE_ORDER})
              ) as jobs
       from (select job_id, priority, queued_at from attempts a
             where a.state = 'queued' and a.shape = s.shape
             order by ${QUEUE_ORDER} limit ${JOBS + 1}) first) front
     join jobs j on j.job_id = front.any_job_id
     where s.shape is not null`,
  );
  return { groups, hasMore: groups.length >= GROUPS };
}

/**
 * Returns those of the given jobs that have a queued attempt. `queued_at` is in seconds since the
 * epoch.
 */
export async function listQueued(db: Queryable, jobIds: string[]) {
  return await all<{ job_id: string; queued_at: number }>(
    db,
    `select job_id, extract(epoch from queued_at)::float8 as queued_at from attempts
     where job_id = any($1) and ${rowFilter("state = 'queued'")}`,
    [jobIds],
  );
}
