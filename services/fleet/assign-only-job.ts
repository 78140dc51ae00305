import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { rowFilter } from "../../platform/postgres/row-filter";
import { requirementGroupRange } from "../accounts/quotas";
import { type Dispatch, STARTED, toDispatch } from "../jobs/dispatch";
import { type Assigned, assignedIn, type MaybeAssigned } from "./assignment";
import {
  FIRST_WAIT,
  headsOf,
  KNOWN_JOB,
  OWN_FITTING_WORKER,
  ownFits,
  sharedFits,
} from "./assignment-sql";
import { IDLE, MAY_RUN, needsOf } from "./eligibility-sql";
import { GIVEN_POLLS, HAS_LIVE_KEY, type Started, type WaitingWorker } from "./long-polls";

/**
 * SQL: sets columns of attempt `a` to `values` if the attempt starts (`p.starts`). Otherwise, the
 * columns keep their values.
 */
const ifItStarts = (values: Record<string, string>): string =>
  Object.entries(values)
    .map(([column, value]) => `${column} = case when p.starts then ${value} else a.${column} end`)
    .join(", ");

/**
 * The statement of `assignOnlyJob`.
 *
 * 1. `fits`: whether an idle worker of the tenant fits one of the given requirement groups (see
 *    GROUPS in assignment-sql.ts), and whether an idle shared worker does.
 * 2. `one_job`: the tenant's queued job. Empty if the tenant has several queued jobs, if no worker
 *    of the tenant fits, or if a shared worker fits.
 * 3. `own_worker`: the worker that a pass of the scheduler would choose, which is the least capable
 *    one that fits. The choice ignores row locks. Otherwise, if this worker were locked for a
 *    moment, the statement would choose a more capable worker, which other jobs may need.
 * 4. `locked_job`, `locked_attempt` and `locked_worker`: lock the rows of the job, the attempt and
 *    the worker, in the order that all transactions use, and check them again. Empty if another
 *    transaction has locked one of the rows.
 * 5. `locked`: the locked rows. `starts` is true if the worker's latest poll is among `polls` and
 *    the poll's key is valid. Only then does the transaction's commit wait for the disk (see
 *    `tryLockIf` in assignment-sql.ts). Column `commit` exists only to call `set_config`. Postgres
 *    computes the column although nothing reads it, because the CTE is materialized.
 * 6. `event`: if the attempt starts, adds the event `assigned`, because the trigger of `jobs` then
 *    adds only the event `running`.
 *
 * The parameters are in subqueries so that Postgres reuses the plan: planning takes longer than
 * running the statement.
 */
const ASSIGN_ONLY_JOB = `
with ${headsOf("(select $1::text[])")},
fits as materialized (select ${ownFits("heads")} as own, ${sharedFits("heads")} as shared),
queued as materialized (
  select job_id, attempt from attempts
  where state = 'queued' and shape > (select $2::text) and shape < (select $3::text) order by shape limit 2),
one_job as materialized (
  select a.job_id, a.attempt, ${needsOf()}
  from queued a cross join lateral ${KNOWN_JOB("a.job_id")} j
  where (select count(*) from queued) = 1 and (select own and not shared from fits)),
commits as materialized (
  select current_setting('synchronous_commit') as for_start, set_config('synchronous_commit', 'off', true) as otherwise
  from one_job),
own_worker as materialized (
  select q.*, w.worker_id from commits, one_job q cross join lateral ${OWN_FITTING_WORKER} w),
locked_job as materialized (
  select q.* from own_worker q cross join lateral (
    select from jobs j where j.job_id = q.job_id and ${rowFilter("j.status in ('pending', 'provisioning_worker')")}
      and j.req_avoid = q.req_avoid
    for no key update skip locked) j),
locked_attempt as materialized (
  select q.* from locked_job q cross join lateral (
    select from attempts where job_id = q.job_id and attempt = q.attempt and ${rowFilter("state = 'queued'")}
    for no key update skip locked) a),
locked_worker as materialized (
  select q.job_id, q.attempt, q.worker_id, w.poll_seq from locked_attempt q cross join lateral (
    select w.poll_seq from workers w where w.worker_id = q.worker_id and not w.shared and ${MAY_RUN} and ${IDLE}
    for no key update skip locked) w),
${GIVEN_POLLS("$4")},
locked as materialized (
  select q.*, "workerId" is not null as starts, "leaseToken" as lease_token,
         case when "workerId" is not null then
           set_config('synchronous_commit', (select for_start from commits), true) end as commit
  from locked_worker q left join polls on "workerId" = q.worker_id and "pollSeq" = q.poll_seq
    and ${HAS_LIVE_KEY}),
job as (
  update jobs j set worker_id = p.worker_id, status = case when p.starts then 'running' else 'assigned' end,
         attempts = case when p.starts then p.attempt else j.attempts end,
         started_at = case when p.starts then coalesce(j.started_at, now()) else j.started_at end
  from locked p where j.job_id = p.job_id),
event as (
  insert into job_events (job_id, user_id, status, attempts, worker_id)
  select j.job_id, j.user_id, 'assigned', j.attempts, p.worker_id
  from locked p join jobs j on j.job_id = p.job_id where p.starts),
attempt as (
  update attempts a set worker_id = p.worker_id, assigned_at = now(),
         state = case when p.starts then 'running' else 'assigned' end,
         ${ifItStarts({ ...STARTED, lease_token: "p.lease_token" })}
  from locked p join jobs j on j.job_id = p.job_id join workers w on w.worker_id = p.worker_id
  where a.job_id = p.job_id and a.attempt = p.attempt
  returning a.output_ids, a.serving_token,
            greatest(0, extract(epoch from a.started_at - a.queued_at))::float8 as queued_s),
worker as (
  update workers w set status = 'busy' from locked p where w.worker_id = p.worker_id)
select p.job_id, p.attempt, p.worker_id, first.job_type, first.waited_s, p.starts,
       j.user_id, j.payload, j.params, j.timeout_s, j.deployment_id,
       attempt.output_ids, attempt.serving_token, attempt.queued_s,
       fits.own as own_worker_fits, fits.shared as shared_worker_fits
from fits left join locked p on true left join lateral ${FIRST_WAIT} first on true
left join jobs j on p.starts and j.job_id = p.job_id left join attempt on true`;

/**
 * `waited_s`: how long the job waited for its first assignment. `queued_s`: how long the attempt
 * was queued before it started.
 */
type Row = MaybeAssigned & {
  own_worker_fits: boolean;
  shared_worker_fits: boolean;
} & (
    | { starts: false | null }
    | ({ starts: true; queued_s: number } & Omit<Dispatch, keyof Assigned | "is_cancelled">)
  );

interface Found {
  assigned: Assigned | undefined;
  /** Set if the assigned attempt has also started. */
  started: Started | undefined;
  /** Whether an idle worker of the tenant fits one of the groups. */
  ownWorkerFits: boolean;
  /**
   * Whether an idle shared worker fits one of the groups. If so, nothing is assigned, because
   * shared workers are divided among all tenants.
   */
  sharedWorkerFits: boolean;
}

/**
 * Assigns the tenant's only queued job to the least capable idle worker of the tenant that fits, as
 * a pass would. Most jobs find an empty queue, so this case has a short statement of its own, which
 * does not take the matcher's lock. If the worker's latest poll is one of `polls`, also starts the
 * attempt, as `dispatchJob` would.
 *
 * Assigns nothing if the tenant has more queued jobs, if no worker of the tenant fits, if a shared
 * worker fits, or if another transaction has locked the rows.
 *
 * @param groups the requirement groups of the tenant's new jobs.
 */
export async function assignOnlyJob(
  db: Queryable,
  tenant: string,
  groups: string[],
  polls: WaitingWorker[],
): Promise<Found> {
  const values = [groups, ...requirementGroupRange(tenant), JSON.stringify(polls)];
  const row = await maybeOne<Row>(db, ASSIGN_ONLY_JOB, values);
  const [assigned] = row ? assignedIn([row]) : [];
  const poll = row?.starts && polls.find(({ workerId }) => workerId === row.worker_id);
  return {
    assigned,
    started:
      assigned && poll
        ? { poll, job: toDispatch({ ...row, ...assigned, waited_s: row.queued_s }) }
        : undefined,
    ownWorkerFits: row?.own_worker_fits ?? false,
    sharedWorkerFits: row?.shared_worker_fits ?? false,
  };
}
