import { JOB_TYPES } from "../../core/jobs/job-types";
import { rowFilter } from "../../platform/postgres/row-filter";
import {
  ACCEPTS_JOBS,
  ADMITS_AND_FITS,
  HELD_ATTEMPT,
  IDLE,
  MAY_RUN,
  needsOf,
  SOME_KINDS,
} from "./eligibility-sql";

/**
 * Key of the matcher's lock, an advisory lock that lets one pass run at a time over all processes.
 * The number is arbitrary.
 */
const MATCHER_LOCK = 7_263_002;

/**
 * The most workers that one pass assigns jobs to. The scheduler repeats passes until no job fits.
 */
const BATCH = 50;

/**
 * Maximum number of comparisons in a pass. A pass over g requirement groups compares each of its w
 * workers with up to w queued jobs of each group, which makes w * w * g comparisons. So w is the
 * square root of (COMPARISONS / g), but at least 4 and at most BATCH.
 */
const COMPARISONS = 50_000;

/**
 * The most requirement groups that one pass reads. A requirement group is the queued jobs of one
 * tenant with equal requirements. If there are more groups, the next pass continues after the last
 * group that this one read.
 */
export const GROUPS = 2_000;

/**
 * SQL: a recursive CTE `name` that lists up to `limit` requirement groups of the queue after the
 * group `after`, each with one of its jobs. Reads only attempts that meet `condition`. Reads
 * nothing if `guard` is false. Jumps from group to group in the queue's index, so it does not read
 * all jobs of a group.
 */
export const listGroups = (
  name: string,
  after: string,
  limit: number,
  condition = "true",
  guard = "true",
): string => `${name} (shape, job_id, nth) as (
  (select shape, job_id, 1 from attempts
   where state = 'queued' and ${condition} and shape > ${after} and ${guard} order by shape limit 1)
  union all
  select following.*, s.nth + 1 from ${name} s cross join lateral (
    select shape, job_id from attempts
    where state = 'queued' and ${condition} and shape > s.shape order by shape limit 1) following
  where s.nth < ${limit})`;

/**
 * SQL: the job with this id, if this release knows its type. After a rollback from a later release,
 * jobs of newer types stay queued. `offset 0` keeps Postgres from turning the lookup into a join: a
 * join that was planned while the table was small would read the whole table even after the table
 * has grown.
 */
export const KNOWN_JOB = (jobId: string): string => `(
    select * from jobs where job_id = ${jobId} and job_type = any('{${JOB_TYPES.join(",")}}') offset 0)`;

/** SQL: a CTE `name` with the requirements of each of the `groups`, one row (head) per group. */
const headsIn = (groups: string, name: string): string => `${name} as materialized (
  select h.shape, ${needsOf()} from ${groups} h cross join lateral ${KNOWN_JOB("h.job_id")} j)`;

export const HEADS = headsIn("groups", "heads");

/** SQL: the order in which workers get jobs, the least capable worker first. */
const LEAST_CAPABLE = 'w.gpu_count, w.gpu_memory_gb, w.shared, w.worker_id collate "C"';

/**
 * SQL: the least capable idle worker of the tenant that fits requirements `q`. Reads the tenant's
 * idle workers in the order of the index `workers_idle` until one fits. Without `rowFilter`, the
 * planner expects hardly any worker to meet the conditions, and sorts all idle workers. Without the
 * `offset`, Postgres may read the held attempts of all tenants.
 */
export const OWN_FITTING_WORKER = `(
  select w.worker_id from workers w
  where w.user_id = q.user_id and not w.shared and w.status = 'idle' and w.gpu_count >= q.req_gpu_count
    and ${rowFilter(`${MAY_RUN} and ${ACCEPTS_JOBS} and not exists (${HELD_ATTEMPT} offset 0)`)}
  order by ${LEAST_CAPABLE} limit 1)`;

/** SQL: whether an idle worker that belongs to the tenant fits one of these `heads`. */
export const ownFits = (heads: string): string =>
  `exists (select from ${heads} q cross join lateral ${OWN_FITTING_WORKER} w)`;

/** SQL: whether an idle shared worker fits one of these `heads`. */
export const sharedFits = (heads: string): string =>
  `exists (select from ${heads} q cross join workers w where w.shared and ${MAY_RUN} and ${IDLE})`;

/**
 * Longest time for which a pass waits for a locked row, in ms. The pass then runs again and leaves
 * out locked rows.
 */
const LOCKED_MS = 300;

/**
 * SQL: if `condition` is true, tries to take the matcher's lock until the transaction ends.
 * `is_held` is false if another process has the lock, and null if the condition is not true.
 *
 * Makes the transaction's commit asynchronous, so that it does not wait for the disk: if a crash
 * loses an assignment, a later pass assigns the job again. A job is dispatched by a later
 * transaction, whose commit waits for the disk.
 */
const tryLockIf = (condition: string, from = ""): string => `matcher_lock as materialized (
  select case when ${condition} then pg_try_advisory_xact_lock(${MATCHER_LOCK}) end as is_held
  from set_config('synchronous_commit', 'off', true) as commits,
       set_config('lock_timeout', '${LOCKED_MS}', true) as waits ${from})`;

/**
 * SQL: tries to take the matcher's lock only if an idle worker of the tenant fits a job of these
 * groups and no idle shared worker does. Otherwise `is_held` is null.
 */
const tryLockIfOwnFit = (groups: string): string => `${firstOf(groups, "queued")},
${headsIn("queued", "submitted_heads")},
fits as materialized (select ${ownFits("submitted_heads")} as own, ${sharedFits("submitted_heads")} as shared),
${tryLockIf("own and not shared", "cross join fits")}`;

const HAS_MATCHER_LOCK = "(select is_held from matcher_lock)";

/** SQL: the queue's requirement groups after `after`, with the requirements of each. */
const headsAfter = (after: string, condition = "true"): string =>
  `${listGroups("groups", after, GROUPS, condition, HAS_MATCHER_LOCK)}, ${HEADS}`;

/** SQL: the given groups that have queued jobs, with the requirements of each. */
export const headsOf = (groups: string): string => `${firstOf(groups, "groups")},
${HEADS}`;

/**
 * SQL: the order of a group's queued attempts. A query that needs any one queued attempt also uses
 * this order, so that the planner uses the queue's index. Otherwise, if the queue is long, the
 * planner expects a queued attempt near the beginning of the table. The query then reads all ended
 * attempts before it finds one.
 */
export const QUEUE_ORDER = "priority desc, queued_at, job_id";

/** SQL: a CTE `name` with a row for each given group that has queued jobs, and one of its jobs. */
function firstOf(groups: string, name: string): string {
  return `${name} as materialized (
  select shape, first.job_id from unnest(${groups}) g (shape) cross join lateral (
    select job_id from attempts where state = 'queued' and shape = g.shape order by ${QUEUE_ORDER} limit 1) first)`;
}

/** SQL: the group after which the next pass continues; null if this pass read all groups. */
const NEXT = `(select case when count(*) = ${GROUPS} then max(shape) end from groups)`;

/** SQL: whether the pass chose pairs whose rows another transaction has locked or changed. */
const WAS_BLOCKED = "(select count(*) from pairs) > (select count(*) from locked)";

/**
 * SQL: whether another pass over the same groups right now would assign nothing. This is so if the
 * pass considered all workers and all kinds of workers, although both are limited (`size`,
 * SOME_KINDS), and if it could lock the job and the worker of every pair that it chose.
 */
const IS_EXHAUSTIVE = `(select count(*) from useful) < (select workers from size)
  and not ${WAS_BLOCKED}
  and (select count(*) from kinds) = (select count(*) from all_kinds)`;

/** The parts in which the statements of `statementsOf` differ. */
interface PassSql {
  /** The requirement groups that the pass reads. */
  heads: string;
  /** Condition for the workers `w` that the pass considers. */
  ofWorker?: string;
  lock?: string;
  sharedWorkerFits?: string;
  /**
   * True: the pass leaves out locked rows and never waits for one, because a frozen process may
   * hold a row for half a minute. False: the pass waits for a locked row for up to LOCKED_MS,
   * because most rows are locked only for a moment, and a job that is left out may have to wait for
   * the next sweep.
   */
  skips: boolean;
}

/**
 * SQL: the type of job `p.job_id`, and `waited_s`: how many seconds the job waited for its first
 * assignment. If the job was assigned before, `waited_s` is null. Reads the job's events, because
 * an earlier assignment that the worker did not fetch leaves no trace in the attempt. The `limit`
 * keeps the planner from reading whole tables.
 */
export const FIRST_WAIT = `(
  select j.job_type, case when a.attempt = 1 and not exists (
      select from job_events e where e.job_id = j.job_id and e.status = 'assigned')
    then greatest(0, extract(epoch from now() - a.queued_at))::float8 end as waited_s
  from jobs j join attempts a using (job_id)
  where j.job_id = p.job_id and a.attempt = p.attempt limit 1)`;

/**
 * Pairs queued attempts with idle workers by the rules of core/fleet/matching.ts, in one statement.
 *
 * 1. `fitting` compares kinds of idle workers with requirement groups: a tenant's own workers with
 *    its own groups, shared workers with all groups.
 * 2. `queue` reads at most as many jobs of each group as there are idle workers that fit the group.
 *    So the pass is not slowed down by a long queue or by jobs that no worker fits.
 * 3. `greedy` walks over the workers, the least capable first, and chooses a job for each. Its
 *    columns `given_…` list the shared workers that got a job in this pass so far, and the tenant
 *    of each such job.
 * 4. `locked` locks the rows of the chosen pairs. It contains the pairs whose attempt is still
 *    queued and whose worker is still idle and still fits. A worker may no longer fit, because it
 *    has registered again with a different list of `tenants`. All updates use only these pairs.
 */
const match = ({
  heads,
  ofWorker = "true",
  lock = tryLockIf("true"),
  sharedWorkerFits = "null::bool",
  skips,
}: PassSql): string => `
with recursive ${lock},
idle as materialized (
  select worker_id, user_id, shared, tenants, job_types, gpu_count, gpu_memory_gb, gpu_tokens, tags,
         dense_rank() over (order by shared, case when shared then '' else user_id end collate "C",
                            gpu_count, gpu_memory_gb, gpu_tokens, tags, job_types, tenants) as kind
  from workers w
  where ${HAS_MATCHER_LOCK} and (w.shared or w.user_id in (select user_id from heads)) and ${ofWorker} and ${IDLE}),
${heads},
size as materialized (
  select greatest(4, least(${BATCH}, floor(sqrt(${COMPARISONS}.0 / greatest(1, count(*))))))::int as workers
  from heads),
all_kinds as (
  select kind, case when shared then '' else user_id end as user_id, shared, tenants, job_types,
         gpu_count, gpu_memory_gb, gpu_tokens, tags, count(*) as n
  from idle group by 1, 2, 3, 4, 5, 6, 7, 8, 9),
kinds as materialized (${SOME_KINDS}),
fitting as materialized (
  select q.shape, q.req_avoid, w.kind, w.n
  from heads q join kinds w on w.user_id = q.user_id where ${ADMITS_AND_FITS}
  union all
  select q.shape, q.req_avoid, w.kind, w.n from heads q cross join kinds w where w.shared and ${ADMITS_AND_FITS}),
wanted as materialized (select shape, sum(n) as n from fitting group by shape),
queue as materialized (
  select a.*, q.shape, q.user_id
  from heads q join wanted using (shape), lateral (
    select t.job_id, t.attempt, t.priority, t.queued_at
    from attempts t ${skips ? "join jobs j using (job_id)" : ""}
    where state = 'queued' and shape = q.shape
    order by t.priority desc, queued_at, job_id
    limit least((select workers from size), wanted.n)
    ${skips ? "for no key update of j, t skip locked" : ""}) a),
able as materialized (
  select w.* from idle w ${skips ? "join workers free using (worker_id)" : ""}
  where exists (select from fitting f where f.kind = w.kind and w.worker_id <> all (f.req_avoid))
  order by ${LEAST_CAPABLE}
  limit (select workers from size) ${skips ? "for no key update of free skip locked" : ""}),
useful as materialized (select row_number() over (order by ${LEAST_CAPABLE}) as place, w.* from able w),
offers as materialized (
  select f.kind, f.req_avoid, q.* from queue q join fitting f using (shape)
  where f.kind in (select kind from useful)),
tenants as materialized (select distinct user_id from queue),
held as materialized (
  select t.user_id, w.gpu_count, w.gpu_memory_gb, count(*) as n
  from tenants t
  join attempts a on a.shared_for = t.user_id and a.state in ('assigned', 'running')
  join workers w using (worker_id)
  group by t.user_id, w.gpu_count, w.gpu_memory_gb),
greedy (place, job_id, attempt, worker_id, shared_for, tried, given_users, given_gpus, given_gb) as (
  select 0::bigint, null::text, null::int, null::text, null::text, array[]::text[], array[]::text[],
         array[]::int[], array[]::float8[]
  union all
  select w.place, q.job_id, q.attempt, w.worker_id, case when w.shared then q.user_id end,
         g.tried || q.job_id, g.given_users || case when w.shared then q.user_id end,
         g.given_gpus || w.gpu_count, g.given_gb || w.gpu_memory_gb
  from greedy g join useful w on w.place = g.place + 1
  left join lateral (
    select q.* from (
      select distinct on (q.user_id) q.*,
             case when $1::text[] && array[q.user_id, '*'] then q.priority else 0 end as rank
      from offers q
      where q.kind = w.kind and w.worker_id <> all (q.req_avoid)
        and q.job_id <> all (array_remove(g.tried, null))
      order by q.user_id, q.priority desc, q.queued_at, q.job_id collate "C") q
    join (
      select t.user_id, case when w.shared then (
          select coalesce(sum(n), 0) from held h where h.user_id = t.user_id
            and h.gpu_count >= w.gpu_count and h.gpu_memory_gb >= w.gpu_memory_gb
        ) + (
          select count(*) from unnest(g.given_users, g.given_gpus, g.given_gb) given (u, gpus, gb)
          where u = t.user_id and gpus >= w.gpu_count and gb >= w.gpu_memory_gb
        ) end as n
      from tenants t) share using (user_id)
    order by q.rank desc, share.n, q.queued_at, q.job_id collate "C" limit 1) q on true),
pairs as materialized (
  select job_id, attempt, worker_id, shared_for from greedy where job_id is not null),
locked_jobs as materialized (
  select p.* from pairs p join jobs j using (job_id)
  where ${rowFilter("j.status in ('pending', 'provisioning_worker')")} order by p.job_id for no key update of j ${skips ? "skip locked" : ""}),
locked_attempts as materialized (
  select p.* from locked_jobs p join attempts a using (job_id, attempt)
  where ${rowFilter("a.state = 'queued'")} order by p.job_id for no key update of a ${skips ? "skip locked" : ""}),
locked as materialized (
  select p.* from locked_attempts p join jobs q on q.job_id = p.job_id join workers w on w.worker_id = p.worker_id
  where ${IDLE} and ${MAY_RUN} order by p.worker_id for no key update of w ${skips ? "skip locked" : ""}),
job as (
  update jobs j set status = 'assigned', worker_id = p.worker_id
  from locked p where j.job_id = p.job_id),
attempt as (
  update attempts a set state = 'assigned', worker_id = p.worker_id, shared_for = p.shared_for,
         assigned_at = now()
  from locked p where a.job_id = p.job_id and a.attempt = p.attempt),
worker as (
  update workers w set status = 'busy' from locked p where w.worker_id = p.worker_id)
select p.job_id, p.attempt, p.worker_id, first.job_type, first.waited_s,
       null as next, null as is_exhaustive, null as was_blocked, null as had_lock, null as shared_worker_fits
from locked p cross join lateral ${FIRST_WAIT} first
union all
select null, null, null, null, null, ${NEXT}, ${IS_EXHAUSTIVE}, ${WAS_BLOCKED}, ${HAS_MATCHER_LOCK}, ${sharedWorkerFits}`;

const statementsOf = (skips: boolean) => ({
  after: match({ skips, heads: headsAfter("$2::text") }),
  these: match({
    skips,
    heads: headsOf("$2::text[]"),
    ofWorker: "w.worker_id = any($3::text[])",
  }),
  own: match({
    skips,
    heads: headsAfter("$2::text", "shape < $3::text"),
    ofWorker: `w.user_id = $4 and not w.shared
      and exists (select from heads q where q.shape = any($5::text[]) and ${MAY_RUN})`,
    lock: tryLockIfOwnFit("$5::text[]"),
    sharedWorkerFits: "(select shared from fits)",
  }),
});

/** The statements of a pass, by its `Scope` (assignment.ts). They wait for locked rows. */
export const WAITING = statementsOf(false);
/** The same statements, but they leave out locked rows. */
export const SKIPPING = statementsOf(true);

/**
 * If a process freezes during a pass, Postgres ends its transaction after this time, in ms, and so
 * frees the lock.
 */
const FROZEN_MS = 2_000;

/**
 * Begins a pass of the scheduler. Waits for the matcher's lock, so that one pass runs at a time
 * over all processes.
 */
export const BEGIN = `set local synchronous_commit = off;
  set local idle_in_transaction_session_timeout = ${FROZEN_MS};
  select pg_advisory_xact_lock(${MATCHER_LOCK})`;
