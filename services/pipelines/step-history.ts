import type { Usage } from "../../core/billing/usage";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import type { JobType } from "../../core/jobs/job-types";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "../jobs/all-jobs";

/**
 * Median duration and cost of a tenant's most recent completed jobs of a type. The cost of deploy
 * jobs counts as 0: deployments are billed on their own.
 */
export interface TypeHistory {
  job_type: JobType;
  duration_s: number;
  cost_usd: number;
  jobs: number;
}

const RECENT_JOBS = 50;

export async function readHistory(db: Queryable, userId: string, types: JobType[]) {
  return await all<TypeHistory>(
    db,
    `select t.job_type, count(*) as jobs,
            percentile_cont(0.5) within group (
              order by extract(epoch from j.completed_at - j.started_at)) as duration_s,
            percentile_cont(0.5) within group (
              order by case when t.job_type = '${DEPLOYMENT_TYPE}' then 0 else b.total_cost_usd::float8 end)
              as cost_usd
     from unnest($2::text[]) as t (job_type)
     cross join lateral (
       select job_id, started_at, completed_at from ${ALL_JOBS} jobs
       where user_id = $1 and job_type = t.job_type and status = 'completed'
       order by completed_at desc limit ${RECENT_JOBS}) j
     join billing_records b using (job_id)
     group by t.job_type`,
    [userId, [...new Set(types)]],
  );
}

/** Usage and payload of one of a tenant's most recent completed jobs of a type. */
export interface UsageSample {
  usage: Usage;
  gpu_tokens: string[];
  payload: Record<string, unknown>;
}

export async function readUsageHistory(db: Queryable, userId: string, type: JobType) {
  return await all<UsageSample>(
    db,
    `select b.metrics as usage, b.gpu_tokens, j.payload
     from ${ALL_JOBS} j join billing_records b using (job_id)
     where j.user_id = $1 and j.job_type = $2 and j.status = 'completed'
     order by j.completed_at desc limit ${RECENT_JOBS}`,
    [userId, type],
  );
}

/** The newest completed job with this reuse key whose artifact has not been deleted. */
export async function findReusableJob(
  db: Queryable,
  userId: string,
  reuseKey: string,
): Promise<string | undefined> {
  const row = await maybeOne<{ job_id: string }>(
    db,
    `select job_id from ${ALL_JOBS} j join artifacts a using (job_id)
     where j.user_id = $1 and j.reuse_key = $2 and j.status = 'completed'
       and a.registered_at is not null and a.deleted_at is null
     order by j.completed_at desc limit 1`,
    [userId, reuseKey],
  );
  return row?.job_id;
}
