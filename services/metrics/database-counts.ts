import { all, type Queryable } from "../../platform/postgres/pool";

/** The queued attempts of one requirement group (`shape`). */
export interface QueuedCount {
  shape: string;
  job_type: string;
  jobs: number;
  oldest_s: number;
}

export async function countQueued(db: Queryable) {
  return await all<QueuedCount>(
    db,
    `select queued.shape, j.job_type, queued.jobs, queued.oldest_s from (
       select shape, count(*)::int as jobs, min(job_id) as any_job_id,
              greatest(0, extract(epoch from now() - min(queued_at)))::float8 as oldest_s
       from attempts where state = 'queued' group by shape) queued
     join jobs j on j.job_id = queued.any_job_id`,
  );
}

/**
 * A number of rows. `oldest_s` is the age of the oldest row; null for subjects whose age is not
 * measured.
 */
export interface RowCount {
  subject: string;
  label: string;
  count: number;
  oldest_s: number | null;
}

/** Counts unfinished work in the database. Each count reads a small index. */
export async function countRows(db: Queryable) {
  return await all<RowCount>(db, STATEMENT);
}

const AGE = (time: string): string =>
  `greatest(0, extract(epoch from now() - min(${time})))::float8`;

/**
 * SQL: whether outbox entry `o` is a workflow start that was planned for later when its job was
 * submitted. No delivery of the entry has failed (`tries` is 0). The entry is due in more than
 * 15 s. An entry that is due sooner may be in delivery: before a delivery, the courier sets
 * `due_at`, by default to ten seconds from now.
 */
const IS_PLANNED = "o.topic = 'start' and o.tries = 0 and o.due_at > now() + interval '15 s'";

const STATEMENT = `
  select 'workers' as subject, status as label, count(*)::int as count, null::float8 as oldest_s
  from workers where decommissioned_at is null group by status
  union all
  select 'outbox', '', count(*)::int, ${AGE("j.moved_at")} from outbox o join jobs j using (job_id)
  where not (${IS_PLANNED})
  union all
  select 'wakes', 'pipelines', count(*)::int, null from pipelines where told < asked
  union all
  select 'wakes', 'deployments', count(*)::int, null from deployments
  where status <> 'stopped' and told < asked
  union all
  select 'finishing', '', count(*)::int, ${AGE("a.ended_at")} from jobs j join attempts a using (job_id)
  where j.status not in ('completed', 'failed') and j.status = 'running' and a.outcome = 'completed'
  union all
  select 'stuck', activity, count(*)::int, ${AGE("since")} from stuck_writes group by activity
  union all
  select 'pipelines', status, count(*)::int, null from pipelines
  where status in ('running', 'waiting_approval') group by status
  union all
  select 'deployments', status, count(*)::int, null from deployments
  where status in ('active', 'stopping') group by status
  union all
  select 'export', '', count(*)::int, ${AGE("created_at")} from billing_lines
  where exported_at is null and cost_usd > 0`;
