import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { requirementGroupRange } from "../accounts/quotas";
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

/**
 * The statement of `assignOnlyJob`.
 *
 * 1. `fits`: whether an idle worker of the tenant fits one of the groups, and whether an idle shared worker does.
 * 2. `one_job`: the tenant's queued job. Empty if the tenant has several queued jobs, if no own worker fits, or if a
 *    shared worker fits.
 * 3. `own_worker`: the worker that a pass would choose. The choice ignores row locks: a worker that is locked for a
 *    moment must not be passed over for a more capable one, which other jobs may need.
 * 4. `locked_job`, `locked_attempt` and `locked`: lock the rows of the job, the attempt and the worker, in the order
 *    that all transactions use, and check them again. Empty if another transaction has locked one of the rows.
 *
 * The commit does not wait for the disk: see `tryLockIf`. The parameters are in subqueries so that Postgres reuses the
 * plan: planning takes longer than running the statement.
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
commits as materialized (select set_config('synchronous_commit', 'off', true) from one_job),
own_worker as materialized (
  select q.*, w.worker_id from commits, one_job q cross join lateral ${OWN_FITTING_WORKER} w),
locked_job as materialized (
  select q.* from own_worker q cross join lateral (
    select from jobs j where j.job_id = q.job_id and j.status in ('pending', 'provisioning_worker')
      and j.req_avoid = q.req_avoid
    for no key update skip locked) j),
locked_attempt as materialized (
  select q.* from locked_job q cross join lateral (
    select from attempts where job_id = q.job_id and attempt = q.attempt and state = 'queued'
    for no key update skip locked) a),
locked as materialized (
  select q.job_id, q.attempt, q.worker_id from locked_attempt q cross join lateral (
    select from workers w where w.worker_id = q.worker_id and not w.shared and ${MAY_RUN} and ${IDLE}
    for no key update skip locked) w),
job as (
  update jobs j set status = 'assigned', worker_id = p.worker_id from locked p where j.job_id = p.job_id),
attempt as (
  update attempts a set state = 'assigned', worker_id = p.worker_id, assigned_at = now()
  from locked p where a.job_id = p.job_id and a.attempt = p.attempt),
worker as (
  update workers w set status = 'busy' from locked p where w.worker_id = p.worker_id)
select p.job_id, p.attempt, p.worker_id, first.job_type, first.waited_s,
       fits.own as own_worker_fits, fits.shared as shared_worker_fits
from fits left join locked p on true left join lateral ${FIRST_WAIT} first on true`;

interface Row extends MaybeAssigned {
  own_worker_fits: boolean;
  shared_worker_fits: boolean;
}

interface Found {
  assigned: Assigned | undefined;
  /** Whether an idle worker of the tenant fits one of the groups. */
  ownWorkerFits: boolean;
  /** Whether an idle shared worker fits. If so, nothing is assigned: shared workers are divided among all tenants. */
  sharedWorkerFits: boolean;
}

/**
 * Assigns the tenant's only queued job to the tenant's least capable idle worker that fits, as a pass would. Usually, a
 * tenant that submits a job has no other queued job, so this case has its own short statement, without the matcher's
 * lock. Assigns nothing if the tenant has several queued jobs, if no own worker fits, if a shared worker fits, or if
 * another transaction has locked one of the rows.
 *
 * @param groups the requirement groups of the tenant's new jobs.
 */
export async function assignOnlyJob(
  db: Queryable,
  tenant: string,
  groups: string[],
): Promise<Found> {
  const row = await maybeOne<Row>(db, ASSIGN_ONLY_JOB, [groups, ...requirementGroupRange(tenant)]);
  const [assigned] = row ? assignedIn([row]) : [];
  return {
    assigned,
    ownWorkerFits: row?.own_worker_fits ?? false,
    sharedWorkerFits: row?.shared_worker_fits ?? false,
  };
}
