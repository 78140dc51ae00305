import type { TenantScope } from "../../core/accounts/permissions";
import type { JobType } from "../../core/jobs/job-types";
import type { ErrorCode } from "../../core/jobs/states";
import { deleteOlder } from "../../platform/postgres/clock";
import { Where } from "../../platform/postgres/pages";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "../jobs/all-jobs";

export interface TenantEventRow {
  event_id: number;
  user_id: string;
  kind: "job" | "pipeline" | "worker" | "deployment";
  /** The id of the job, pipeline, worker or deployment, in the form that the tenant uses. */
  subject: string;
  status: string;
  /** This field and the next ones, up to `error_code`, are null unless `kind` is `job`. */
  job_type: JobType | null;
  pipeline_id: string | null;
  attempts: number | null;
  worker_id: string | null;
  error_code: ErrorCode | null;
  created_at: Date;
}

/**
 * SQL: the first `limit` events that match `condition`, ordered by id. OFFSET 0 makes Postgres look
 * up the job of each event separately. Otherwise it would join with all jobs, because it
 * overestimates the number of events.
 */
const firstEvents = (condition: string, limit: string): string => `
  select e.event_id, e.user_id, 'job' as kind, e.job_id as subject, e.status, j.job_type, j.pipeline_id,
         e.attempts, e.worker_id, e.error_code, e.created_at
  from (select * from job_events e where ${condition} order by event_id limit ${limit}) e
  cross join lateral (
    select job_type, pipeline_id from ${ALL_JOBS} j where j.job_id = e.job_id offset 0) j
  union all
  select event_id, e.user_id, kind,
         case when kind = 'deployment' then coalesce(
           (select coalesce(given_id, artifact_id) from artifacts a where a.artifact_id = e.subject), subject)
         else subject end, status, null, null, null, null, null, created_at
  from (select * from change_events e where ${condition} order by event_id limit ${limit}) e
  order by event_id limit ${limit}`;

/** The newest event's id; 0 if there is none. */
export async function findLastEventId(db: Queryable): Promise<number> {
  const row = await maybeOne<{ id: number }>(
    db,
    `select greatest((select max(event_id) from job_events), (select max(event_id) from change_events), 0)
       as id`,
  );
  return row?.id ?? 0;
}

/**
 * All tenants' events after `afterId`, and the events with the given `ids`, ordered by id. `ids`
 * are the ids below `afterId` that were missing in earlier reads: the transactions that add these
 * events may have committed since then.
 */
export async function readEvents(
  db: Queryable,
  afterId: number,
  ids: number[],
  limit: number,
): Promise<TenantEventRow[]> {
  // `event_id > $3` is redundant, but lets Postgres use an index range scan.
  const condition = "event_id > $3 and (event_id > $1 or event_id = any($2))";
  const before = Math.min(afterId, ...ids.map((id) => id - 1));
  return await all<TenantEventRow>(db, firstEvents(condition, "$4"), [afterId, ids, before, limit]);
}

/**
 * A resumed stream starts this many seconds before the last event that its client has received. An
 * id is assigned before the commit, so an event with a lower id may have been committed only after
 * the client received that last event. If a transaction took longer than this, the client may miss
 * the transaction's events.
 */
const OVERLAP_S = 15;
/** An upper bound of the number of ids assigned in OVERLAP_S. */
const OVERLAP_IDS = 100_000;

/**
 * Events of a tenant scope after the id `lastId`, and the events shortly before it. An id is
 * assigned before the commit, so an event with a lower id may have been committed after the last
 * read. The reader drops duplicates.
 */
export async function listEventsSince(
  db: Queryable,
  tenantScope: TenantScope,
  lastId: number,
  limit: number,
): Promise<TenantEventRow[]> {
  const where = new Where().andIfSet(tenantScope, (user) => `e.user_id = ${user}`);
  where.andParameter(lastId, (last) => {
    const known = (table: string): string =>
      `(select created_at from ${table} where event_id = ${last}::bigint)`;
    const at = `coalesce(${known("job_events")}, ${known("change_events")}, now())`;
    return `e.event_id > ${last}::bigint - ${OVERLAP_IDS}
      and (e.event_id > ${last}::bigint or e.created_at > ${at} - interval '${OVERLAP_S} s')`;
  });
  return await all<TenantEventRow>(db, firstEvents(String(where), String(limit)), where.values);
}

/**
 * `change_events` are kept for a week, because no client resumes an older stream. `job_events` are
 * kept as long as their jobs.
 */
const RETENTION = { table: "change_events", time: "created_at", age: "interval '7 days'" };

export const deleteOldChangeEvents = (db: Queryable, limit: number): Promise<number> =>
  deleteOlder(db, RETENTION, limit);
