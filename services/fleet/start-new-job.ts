import { Parameters } from "../../platform/postgres/parameters";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { requirementGroupRange } from "../accounts/quotas";
import { CARD_NOW } from "../billing/rate-cards";
import { STARTED, toDispatch } from "../jobs/dispatch";
import { addJob, type JobRow, type UnpricedJob } from "../jobs/jobs";
import { START_NUMBER } from "../jobs/outbox-entries";
import { OWN_FITTING_WORKER, sharedFits } from "./assignment-sql";
import { IDLE, MAY_RUN } from "./eligibility-sql";
import { GIVEN_POLLS, HAS_LIVE_KEY, type Started, type WaitingWorker } from "./long-polls";

/** SQL: `value` if worker `w` runs the new job; null if the job waits in the queue. */
const ifItStarts = (value: string): string => `case when w.worker_id is not null then ${value} end`;

/**
 * SQL: inserts a job as `insertUnbudgetedJob` (services/jobs/jobs.ts) does, and starts it on an
 * idle worker if it can.
 *
 * 1. `fitting`: the worker that `assignOnlyJob` would choose. Empty if the tenant has queued jobs,
 *    if no worker of the tenant fits, or if a shared worker fits.
 * 2. `worker`: the same worker, locked and checked again. Empty if another transaction has locked
 *    it, if its latest poll is not among `polls`, or if the poll's key is not valid. All other
 *    transactions lock the job and the attempt before the worker. This one can't cause a deadlock,
 *    because no other transaction can see the job and the attempt yet.
 * 3. `job`, `attempt`: all times are `now()`, the start of the transaction. services/clock relies
 *    on this to correct stored times after the database's clock was set. The transaction may have
 *    waited up to 2 s for an earlier request with the same Idempotency-Key: the times are too early
 *    by this wait.
 * 4. `event`: if the job starts, adds the events `pending` and `assigned`, because the trigger of
 *    `jobs` then adds only the event `running`.
 */
function insertion(given: Parameters, job: UnpricedJob, polls: WaitingWorker[]): string {
  const { columns, values, other } = addJob(given, job);
  const user = given.add(job.user_id);
  const [from, before] = requirementGroupRange(job.user_id).map((bound) => given.add(bound));
  return `
with needs as materialized (
  select ${user}::text as user_id, ${given.add(job.job_type)}::text as job_type,
         ${given.add(job.req_gpu_count)}::int as req_gpu_count,
         ${given.add(job.req_gpu_tokens)}::text[] as req_gpu_tokens,
         ${given.add(job.req_memory_gb)}::float8 as req_memory_gb,
         ${given.add(job.req_tags)}::text[] as req_tags, '{}'::text[] as req_avoid),
${GIVEN_POLLS(given.add(JSON.stringify(polls)))},
queued as materialized (
  select from attempts
  where state = 'queued' and shape > (select ${from}::text) and shape < (select ${before}::text) order by shape limit 1),
fitting as materialized (
  select w.worker_id from needs q cross join lateral ${OWN_FITTING_WORKER} w
  where not exists (select from queued) and not ${sharedFits("needs")}),
worker as materialized (
  select w.worker_id, w.gpu_count, w.gpu_tokens, "leaseToken" as lease_token
  from fitting join polls on "workerId" = worker_id and ${HAS_LIVE_KEY} cross join needs q cross join lateral (
    select w.* from workers w
    where w.worker_id = fitting.worker_id and w.poll_seq = "pollSeq" and not w.shared and ${MAY_RUN} and ${IDLE}
    for no key update skip locked) w),
job as (
  insert into jobs (${columns}, rate_card, status, worker_id, attempts, started_at)
  select ${values}, (${CARD_NOW(user)}), case when w.worker_id is null then 'pending' else 'running' end,
         w.worker_id, case when w.worker_id is null then 0 else 1 end, ${ifItStarts("now()")}
  from (select) one left join worker w on true
  where not exists (select from budgets where user_id = ${user})
  on conflict (job_id) do nothing returning *),
event as (
  insert into job_events (job_id, user_id, status, attempts, worker_id)
  select job_id, user_id, e.status, 0, case when e.status = 'assigned' then worker_id end
  from job cross join (values (1, 'pending'), (2, 'assigned')) e (place, status)
  where job.status = 'running' order by place),
attempt as (
  insert into attempts (job_id, attempt, shape, priority, output_ids, state, worker_id, lease_token, assigned_at,
                        ${Object.keys(STARTED).join(", ")})
  select j.job_id, 1, ${other.shape}, j.priority, ${other.outputIds},
         case when w.worker_id is null then 'queued' else 'running' end, w.worker_id, w.lease_token,
         ${["now()", ...Object.values(STARTED)].map(ifItStarts).join(", ")}
  from job j left join worker w on true
  returning output_ids, serving_token),
start as (
  insert into outbox (job_id, attempt, due_at)
  select job_id, ${START_NUMBER}, now() + make_interval(secs => ${other.startAfterS}::float8)
  from job where ${other.startAfterS}::float8 is not null),
busy as (
  update workers w set status = 'busy' from job where w.worker_id = job.worker_id)
select job.*, attempt.output_ids, attempt.serving_token from job cross join attempt`;
}

type Row = JobRow & { output_ids: Record<string, string>; serving_token: string | null };

/**
 * Inserts a job as `insertUnbudgetedJob` does. The same statement also starts the job's first
 * attempt, if `assignOnlyJob` would choose a worker that has one of `polls` open. The function
 * `insertion` lists all conditions. If the attempt has started, the caller must call
 * `announceAssigned`.
 *
 * @returns `row`: the job as it was submitted, `pending`; undefined if the tenant has a budget.
 *   `started`: set if the attempt has started.
 */
export async function startNewJob(
  db: Queryable,
  job: UnpricedJob,
  polls: WaitingWorker[],
): Promise<{ row: JobRow | undefined; started: Started | undefined }> {
  const given = new Parameters();
  const text = insertion(given, job, polls);
  const inserted = await maybeOne<Row>(db, text, given.values);
  if (!inserted) return { row: undefined, started: undefined };
  const { output_ids, serving_token, ...row } = inserted;
  const poll = polls.find(({ workerId }) => workerId === inserted.worker_id);
  return {
    row: { ...row, status: "pending", worker_id: null, attempts: 0, started_at: null },
    started: poll && { poll, job: toDispatch({ ...inserted, attempt: 1, waited_s: 0 }) },
  };
}
