import type { TenantScope } from "../../core/accounts/permissions";
import { deleteOlder } from "../../platform/postgres/clock";
import { all, execute, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "./all-jobs";

/** What a worker reported about its running attempt. */
export interface MetricsReport {
  job_id: string;
  attempt: number;
  worker_id: string;
  progress: number | null;
  metrics: Record<string, number>;
}

/**
 * The minimum time between two stored reports (points) of an attempt: MIN_STEP_S, or MIN_SHARE of
 * the attempt's run time so far if that is longer.
 */
const MIN_STEP_S = 10;
const MIN_SHARE = 1 / 1_000;

/** Writes a point for each running attempt whose last point is old enough, in one statement. */
export async function writeMetrics(db: Queryable, reports: MetricsReport[]) {
  return await execute(
    db,
    `insert into job_metrics (job_id, attempt, at, progress, metrics)
     select r.job_id, r.attempt, now(), r.progress, r.metrics
     from json_to_recordset($1) r (job_id text, attempt int, worker_id text, progress float8,
                                   metrics jsonb)
     join attempts a on a.job_id = r.job_id and a.attempt = r.attempt and a.state = 'running'
       and a.worker_id = r.worker_id
     where not exists (
       select from job_metrics m where m.job_id = r.job_id and m.attempt = r.attempt
         and m.at > now() - make_interval(secs =>
           greatest(${MIN_STEP_S}, extract(epoch from now() - a.started_at) * ${MIN_SHARE})))
     on conflict do nothing`,
    [JSON.stringify(reports)],
  );
}

export interface MetricsPoint {
  at: Date;
  progress: number | null;
  metrics: Record<string, number>;
}

/**
 * An attempt's points, oldest first. If there are more than `maxPoints`, returns every n-th one,
 * including the last.
 */
export async function listMetrics(
  db: Queryable,
  jobId: string,
  attempt: number,
  tenantScope: TenantScope,
  maxPoints: number,
) {
  return await all<MetricsPoint>(
    db,
    `with numbered as (
       select m.at, m.progress, m.metrics, row_number() over (order by m.at desc) - 1 as back,
              count(*) over () as points
       from job_metrics m join ${ALL_JOBS} j using (job_id)
       where m.job_id = $1 and m.attempt = $2 and ($3::text is null or j.user_id = $3))
     select at, progress, metrics from numbered
     where back % ceil(points::float8 / $4)::bigint = 0 order by at`,
    [jobId, attempt, tenantScope, maxPoints],
  );
}

const RETENTION = { table: "job_metrics", time: "at", age: "interval '30 days'" };

export const deleteOldMetrics = (db: Queryable, limit: number): Promise<number> =>
  deleteOlder(db, RETENTION, limit);
