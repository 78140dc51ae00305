import type pg from "pg";
import type { RankedTenants } from "../../core/fleet/matching";
import { MEMORY_SHARE } from "../../core/jobs/requirements";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { OFFER, type Offer } from "./workers";

/** Any fixed number: one matcher at a time, in all processes. */
const MATCHER_LOCK = 7_263_002;

/** Most workers that one pass gives jobs to; the scheduler goes on until one saw all. */
const BATCH = 50;

/**
 * What a pass may cost: its workers x the rows of the queue that each is compared with, which are as many of each
 * shape as it has workers. With many shapes a pass has fewer workers.
 */
const COMPARISONS = 50_000;

/** Most shapes that one pass looks at; with more of them the next one goes on from the last. */
const SHAPES = 2_000;

export interface MatchedPair {
  job_id: string;
  attempt: number;
  worker_id: string;
}

/**
 * Most kinds of idle workers that are looked at of one tenant: whoever registers workers of which no two are
 * alike pays with passes that see only some of them, at random, and nobody else pays.
 */
const KINDS = 100;

/** core/jobs/requirements.ts's `fits`, of a worker `w` and what `q` needs, whoever the worker is. */
const CAN = `w.gpu_count >= q.req_gpu_count
             and w.gpu_memory_gb >= q.req_memory_gb * ${MEMORY_SHARE}::float8
             and w.gpu_tokens @> q.req_gpu_tokens and w.tags @> q.req_tags
             and coalesce(q.job_type = any(w.job_types), true)`;

/** The same, and whom its owner lets in. */
export const SUITS = `coalesce(q.user_id = any(w.tenants), true) and ${CAN}`;

/** core/fleet/matching.ts's `mayRun`, of one worker. */
export const FITS = `(w.shared or w.user_id = q.user_id) and ${SUITS}
                     and w.worker_id <> all (q.req_avoid)`;

/** One worker whose status were wrong must not make every pass fail on the unique index. */
export const IDLE = `w.status = 'idle' and w.available_until > now() and not w.draining and not exists (
  select from attempts held
  where held.worker_id = w.worker_id and held.state in ('assigned', 'running'))`;

/** SQL: what a job `j` needs. @param avoid the column with the workers that it may not have. */
export const needsOf = (avoid = "j.req_avoid"): string =>
  `j.user_id, j.job_type, j.req_gpu_count, j.req_gpu_tokens, j.req_memory_gb, j.req_tags, ${avoid}`;

/** SQL: of `all_kinds` of workers, those that are looked at. */
export const SOME_KINDS = `
  select * from (
    select *, row_number() over (partition by user_id order by random()) as nth from all_kinds) k
  where shared or nth <= ${KINDS}`;

/**
 * The queue's shapes after `after`, `limit` at most, with a job of each: from one to the next by the index of
 * the queue whose condition is given. None unless `guard`.
 */
export const stepThrough = (
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

/** The queue's shapes after `after`, and what the jobs of each need. */
const headsAfter = (after: string): string => `${stepThrough("shapes", after, SHAPES)},
heads as materialized (
  select h.shape, ${needsOf()} from shapes h join jobs j using (job_id))`;

/** Where the next pass goes on, if this one did not look at all shapes. */
const NEXT = `(select case when count(*) = ${SHAPES} then max(shape) end from heads)`;

/** Whether a pass left no worker that another one could give a job to: it walked over all, and lost none. */
const SAW_ALL = `(select count(*) from useful) < (select workers from size)
  and (select count(*) from pairs) = (select count(*) from locked)
  and (select count(*) from kinds) = (select count(*) from all_kinds)
  and (select count(*) from heads) < ${SHAPES}`;

/**
 * Pairs queued attempts with idle workers by the rules of core/fleet/matching.ts, in one statement.
 *
 * Kinds of idle workers are compared with shapes of queued jobs, each tenant's with its own, and the shared
 * ones with all; those of a tenant that has nothing in the queue with none. Then the queue is read shape by
 * shape, at most one row per idle worker of each, so its depth costs nothing, nor do jobs that nobody fits. The
 * recursion is the greedy walk over the workers, the least capable first; `given_…` are the shared workers that
 * it gave away. Only rows that are still queued and idle under their locks change, and all updates come from
 * that one locked set.
 */
const MATCH = `
with recursive idle as materialized (
  select worker_id, user_id, shared, tenants, job_types, gpu_count, gpu_memory_gb, gpu_tokens, tags,
         dense_rank() over (order by shared, case when shared then '' else user_id end collate "C",
                            gpu_count, gpu_memory_gb, gpu_tokens, tags, job_types, tenants) as kind
  from workers w
  where (w.shared or w.user_id in (select user_id from heads)) and ${IDLE}),
${headsAfter("$2::text")},
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
  from heads q join kinds w on w.user_id = q.user_id where ${SUITS}
  union all
  select q.shape, q.req_avoid, w.kind, w.n from heads q cross join kinds w where w.shared and ${SUITS}),
wanted as materialized (select shape, sum(n) as n from fitting group by shape),
queue as materialized (
  select a.*, q.shape, q.user_id
  from heads q join wanted using (shape), lateral (
    select job_id, attempt, priority, queued_at from attempts
    where state = 'queued' and shape = q.shape
    order by priority desc, queued_at, job_id
    limit least((select workers from size), wanted.n)) a),
useful as materialized (
  select row_number() over (
           order by w.gpu_count, w.gpu_memory_gb, w.shared, w.worker_id collate "C") as place, w.*
  from idle w where exists (
    select from fitting f where f.kind = w.kind and w.worker_id <> all (f.req_avoid))
  limit (select workers from size)),
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
  select job_id, attempt, worker_id, shared_for from greedy where worker_id is not null),
locked_jobs as materialized (
  select p.* from pairs p join jobs j using (job_id)
  where j.status in ('pending', 'provisioning_worker') order by p.job_id for no key update of j),
locked_attempts as materialized (
  select p.* from locked_jobs p join attempts a using (job_id, attempt)
  where a.state = 'queued' order by p.job_id for no key update of a),
locked as materialized (
  select p.* from locked_attempts p join workers w using (worker_id)
  where ${IDLE} order by p.worker_id for no key update of w),
job as (
  update jobs j set status = 'assigned', worker_id = p.worker_id
  from locked p where j.job_id = p.job_id),
attempt as (
  update attempts a set state = 'assigned', worker_id = p.worker_id, shared_for = p.shared_for,
         assigned_at = now()
  from locked p where a.job_id = p.job_id and a.attempt = p.attempt),
worker as (
  update workers w set status = 'busy' from locked p where w.worker_id = p.worker_id)
select job_id, attempt, worker_id, null as next, null as saw_all from locked
union all
select null, null, null, ${NEXT}, ${SAW_ALL}`;

/** A process that stands still while it holds the lock loses it after so long, in ms. */
const FROZEN_MS = 2_000;

/**
 * Before the pass, in statements of their own. The lock: taken inside the matching statement, its
 * snapshot would be older than the lock. The commit does not wait for the disk: an assignment that a
 * crash forgets is made again, and the hand-out that builds on it does wait.
 */
export const BEGIN = `set local synchronous_commit = off;
  set local idle_in_transaction_session_timeout = ${FROZEN_MS};
  select pg_advisory_xact_lock(${MATCHER_LOCK})`;

interface Pass {
  pairs: MatchedPair[];
  /** The shape after which the next pass goes on where this one found nothing; undefined: it saw all. */
  next: string | undefined;
  /** Another pass right after this one would find nothing. */
  sawAll: boolean;
}

type PassRow = { [K in keyof MatchedPair]: MatchedPair[K] | null } & {
  next: string | null;
  saw_all: boolean | null;
};

/**
 * One pass of the scheduler.
 *
 * @param after the shape after which it begins; "" for all.
 */
export async function matchOnce(pool: pg.Pool, ranked: RankedTenants, after = ""): Promise<Pass> {
  const rows = await transaction(pool, (db) => all<PassRow>(db, MATCH, [ranked, after]), {
    begin: BEGIN,
  });
  const pairs = rows.flatMap(({ job_id, attempt, worker_id }) =>
    job_id === null || attempt === null || worker_id === null
      ? []
      : [{ job_id, attempt, worker_id }],
  );
  const { next, saw_all: sawAll } = rows.at(-1) ?? {};
  return { pairs, next: next ?? undefined, sawAll: sawAll ?? false };
}

/** Whether anything waits for a worker: one glance, where a pass is a transaction under a lock. */
export async function isAnythingQueued(db: Queryable): Promise<boolean> {
  const row = await maybeOne(db, "select from attempts where state = 'queued' limit 1");
  return row !== undefined;
}

const OFFER_AND_FIT = `
with recursive ${headsAfter("''")}
select ${OFFER}, exists (select from heads q where ${FITS}) as "isWanted" from workers w where w.worker_id = $1`;

/** How a worker stands, and whether anything queued could run on it: a fraction of a pass, which is needed only then. */
export async function findOfferAndFit(db: Queryable, workerId: string): Promise<Offer | undefined> {
  return await maybeOne(db, OFFER_AND_FIT, [workerId]);
}

/** Of these workers, those with an assignment waiting to be fetched. */
export async function listAssigned(db: Queryable, workerIds: string[]): Promise<string[]> {
  const rows = await all<{ worker_id: string }>(
    db,
    "select worker_id from attempts where state = 'assigned' and worker_id = any($1)",
    [workerIds],
  );
  return rows.map((row) => row.worker_id);
}
