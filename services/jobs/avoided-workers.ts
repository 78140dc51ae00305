import { type Requirements, requirementGroupOf } from "../../core/jobs/requirements";
import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { rowFilter } from "../../platform/postgres/row-filter";
import { MAY_RUN, needsOf } from "../fleet/eligibility-sql";
import { type JobRow, requirementsOfJob } from "./jobs";

/** Returns the job's requirements with `avoid` set to these workers. */
export const requirementsAvoiding = (job: JobRow, avoid: string[]): Requirements => ({
  ...requirementsOfJob(job),
  avoid: [...avoid].sort(),
});

/**
 * Sets the workers that a queued job avoids.
 *
 * @returns whether anything changed.
 */
export async function setAvoided(db: Queryable, job: JobRow, avoid: string[]): Promise<boolean> {
  const needs = requirementsAvoiding(job, avoid);
  const changed = await execute(
    db,
    `with waiting as (
       update jobs set req_avoid = $2
       where job_id = $1 and ${rowFilter("status in ('pending', 'provisioning_worker')")} and req_avoid <> $2
       returning job_id)
     update attempts a set shape = $3 from waiting where a.job_id = waiting.job_id and ${rowFilter("a.state = 'queued'")}`,
    [job.job_id, needs.avoid, requirementGroupOf(job.user_id, needs)],
  );
  return changed > 0;
}

/** SQL: whether worker `w` is in service: it runs a job, or can get one. */
const IN_SERVICE = "(w.status = 'busy' or w.status = 'idle' and w.available_until > now())";

/**
 * Makes a queued retry avoid the workers on which earlier attempts of its job failed or were lost.
 * Otherwise, a broken worker that fails fast and polls again could use up all attempts. If no other
 * worker in service fits the retry, the retry avoids no worker. `stopAvoiding` ends the avoidance
 * after AVOIDED_S, because the other workers may be busy for days.
 */
export async function avoidFailedWorkers(db: Queryable, job: JobRow): Promise<void> {
  // A placement job avoids the workers that already serve its deployment. Do not replace that list.
  if (job.placement !== null) return;
  const row = await maybeOne<{ workers: string[] }>(
    db,
    `with failed as materialized (
       select array(
         select distinct w.worker_id from attempts a join workers w using (worker_id)
         where a.job_id = $1 and a.state = 'ended' and w.status in ('idle', 'busy')) as workers)
     select workers from failed where exists (
       select from jobs j cross join lateral (select ${needsOf("failed.workers as req_avoid")}) q cross join workers w
       where j.job_id = $1 and ${MAY_RUN} and ${IN_SERVICE} and not w.draining)`,
    [job.job_id],
  );
  await setAvoided(db, job, row?.workers ?? []);
}

/** For this many seconds, a retry waits for a worker on which its job has not failed. */
const AVOIDED_S = 30;

/**
 * Lets retries that have waited for AVOIDED_S run on any worker that fits. Moves each retry to the
 * requirement group of its job's first attempt, which avoids no workers.
 */
export async function stopAvoiding(db: Queryable): Promise<void> {
  await execute(
    db,
    `with late as materialized (
       select j.job_id from attempts a join jobs j using (job_id)
       where a.state = 'queued' and a.attempt > 1 and a.queued_at < now() - make_interval(secs => $1)
         and j.req_avoid <> '{}' and j.placement is null and j.status in ('pending', 'provisioning_worker')
       order by j.job_id for no key update of j, a skip locked),
     job as (update jobs j set req_avoid = '{}' from late where j.job_id = late.job_id)
     update attempts a set shape = first.shape
     from late join attempts first on first.job_id = late.job_id and first.attempt = 1
     where a.job_id = late.job_id and a.state = 'queued'`,
    [AVOIDED_S],
  );
}
