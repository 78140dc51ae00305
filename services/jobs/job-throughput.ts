import type { TenantScope } from "../../core/accounts/permissions";
import type { JobType } from "../../core/jobs/job-types";
import { Where } from "../../platform/postgres/pages";
import { all, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "./all-jobs";

export interface ThroughputBucket {
  at: Date;
  submitted: number;
  started: number;
  completed: number;
  failed: number;
  /** Jobs that were waiting when the bucket ended. */
  waiting: number;
  /** Jobs that had started and not ended when the bucket ended. A waiting retry counts, too. */
  running: number;
}

export interface TimeSpan {
  since: string;
  until: string;
  bucketS: number;
}

/**
 * SQL: when a job stops counting as waiting: at its first start, or at its end if it never started.
 * From its first start a job counts as running, even while a later attempt waits in the queue.
 */
const STARTED = "coalesce(started_at, completed_at)";

/**
 * For each bucket of a time span: how many jobs were submitted, started, completed and failed in
 * the bucket, and how many waited and ran when it ended.
 */
export async function readThroughput(
  db: Queryable,
  tenantScope: TenantScope,
  jobTypes: JobType[] | undefined,
  { since, until, bucketS }: TimeSpan,
): Promise<ThroughputBucket[]> {
  const where = new Where()
    .inTenantScope(tenantScope)
    .andIfSet(jobTypes, (types) => `job_type = any(${types})`)
    .andParameter(until, (time) => `created_at < ${time}::timestamptz`);
  const first = where.add(since);
  const last = where.add(until);
  const step = where.add(bucketS);
  const interval = `make_interval(secs => ${step}::int)`;
  const binOf = (time: string): string => `date_bin(${interval}, ${time}, 'epoch')`;
  return await all<ThroughputBucket>(
    db,
    `with span as (select ${binOf(`${first}::timestamptz`)} as first),
     -- Excludes jobs that had ended before the span began.
     known as (
       select created_at, started_at, completed_at, status from jobs
       where ${where} and status not in ('completed', 'failed')
       union all
       select created_at, started_at, completed_at, status from ${ALL_JOBS} jobs, span
       where ${where} and completed_at is not null and completed_at >= span.first),
     changes as (
       select created_at as at, 1 as submitted, 0 as started, 0 as completed, 0 as failed,
              1 as waiting, 0 as running from known
       union all
       select ${STARTED}, 0, (started_at is not null)::int, 0, 0, -1, (started_at is not null)::int
       from known where ${STARTED} is not null
       union all
       select completed_at, 0, 0, (status = 'completed')::int, (status = 'failed')::int,
              0, -(started_at is not null)::int
       from known where completed_at is not null),
     binned as (
       select greatest(${binOf("at")}, first - ${interval}) as at, sum(submitted) as submitted,
              sum(started) as started, sum(completed) as completed, sum(failed) as failed,
              sum(waiting) as waiting, sum(running) as running
       from changes, span where at < ${last}::timestamptz group by 1),
     series as (
       select at from span, generate_series(first - ${interval},
                                            ${last}::timestamptz - interval '1 microsecond', ${interval}) at),
     summed as (
       select at, coalesce(submitted, 0)::int as submitted, coalesce(started, 0)::int as started,
              coalesce(completed, 0)::int as completed, coalesce(failed, 0)::int as failed,
              coalesce(sum(waiting) over (order by at), 0)::int as waiting,
              coalesce(sum(running) over (order by at), 0)::int as running
       from series left join binned using (at))
     select summed.* from summed, span where at >= first order by at`,
    where.values,
  );
}
