import type { Client } from "@temporalio/client";
import type pg from "pg";
import { typesWhere } from "../core/jobs/job-types";
import { jobWorkflowId } from "../core/workflow-ids";
import { all } from "../platform/postgres/pool";
import type { ObjectStore } from "../platform/store/object-store";
import { recompute } from "../services/billing/recompute";
import { ALL_ATTEMPTS, ALL_JOBS } from "../services/jobs/all-jobs";
import { compareWorkflow } from "./compare-workflow";
import {
  compareDeployments,
  IMPOSSIBLE_DEPLOYMENTS,
  recomputeAccruals,
} from "./deployment-invariants";
import { compareFiles } from "./file-invariants";
import { inParallel } from "./in-parallel";
import { comparePipelines } from "./pipeline-invariants";

interface World {
  pool: pg.Pool;
  temporal: Client;
  store: ObjectStore;
}

/**
 * Checks the invariants of docs/architecture.md. Call it when no job or pipeline is in progress,
 * except for jobs that place a live deployment again.
 *
 * @param closed ids of jobs' workflows that have closed with the right status. The call skips these
 *   workflows, and adds those that it finds to be correct. Pass the same set to the next call to
 *   save time. That call does not notice if a skipped workflow has wrongly run again.
 * @returns one line per violation; an empty list if all invariants hold.
 */
export async function checkInvariants(
  world: World,
  closed: Set<string> = new Set(),
): Promise<string[]> {
  const found: string[] = [];
  const find = (sql: string) => all(world.pool, `${WITH_ARCHIVED} ${sql}`);
  for (const [name, sql] of Object.entries({ ...IMPOSSIBLE, ...IMPOSSIBLE_DEPLOYMENTS })) {
    for (const row of await find(sql)) found.push(`${name}: ${JSON.stringify(row)}`);
  }
  found.push(...(await recomputeBills(world)));
  found.push(...(await recomputeAccruals(world.pool)));
  found.push(...(await compareWithTemporal(world, closed)));
  // Check files and billing lines only now: a workflow writes them before it closes, and
  // compareWithTemporal has waited for the jobs' workflows to close.
  found.push(...(await compareFiles(world)));
  for (const row of await find(HOURS_ON_NO_LINE)) {
    found.push(`I2 a job's hours are on no billing line: ${JSON.stringify(row)}`);
  }
  for (const row of await find(HOURS_DIFFER)) {
    found.push(`I2 a job's billed hours differ from its attempts' hours: ${JSON.stringify(row)}`);
  }
  found.push(...(await compareDeployments(world.pool, world.temporal)));
  found.push(...(await comparePipelines(world.pool, world.temporal)));
  return found;
}

/**
 * SQL `with` clause: in the statement that follows, `jobs` and `attempts` include archived jobs and
 * their attempts.
 */
const WITH_ARCHIVED = `with jobs as ${ALL_JOBS}, attempts as ${ALL_ATTEMPTS}`;

/** Each statement finds invalid states. */
const IMPOSSIBLE: Record<string, string> = {
  "I1 a job has not ended": `select j.job_id, j.status from jobs j left join deployments d on d.deployment_id = j.deployment_id
     where j.status not in ('completed', 'failed') and coalesce(d.status, 'stopped') = 'stopped'`,
  "I1 an ended job has a live attempt": `
    select job_id, attempt from attempts a join jobs j using (job_id)
    where a.state <> 'ended' and j.status in ('completed', 'failed')`,
  "I1 an attempt that is not queued waits for a machine that is being set up":
    "select job_id, attempt from attempts where is_provisioning and state <> 'queued'",
  "I1 a job is both archived and not archived": `
    select job_id from jobs group by job_id having count(*) > 1`,
  "I1 an ended job has an outbox entry": "select job_id, topic, attempt from outbox",
  "I2 completed without a bill": `
    select job_id from jobs left join billing_records b using (job_id)
    where status = 'completed' and b.job_id is null`,
  "I2 the rows that the control plane counted differ between bill and manifest": `
    select b.job_id, a.manifest->'num_rows' as manifest, counted.rows as billed
    from billing_records b join artifacts a using (job_id)
    join attempts won on won.job_id = b.job_id and won.attempt = b.attempt, lateral (
      -- If the worker reported no rows, the bill counts the rows of the dataset that the job read.
      -- If the job read no dataset, the bill counts the rows of the job's own artifact.
      select (last->'usage'->>'rows_processed')::numeric as rows, array(
        select (source.manifest->>'num_rows')::numeric from artifacts source
        where source.user_id = b.user_id and coalesce(source.given_id, source.artifact_id)
          in (select jsonb_array_elements_text(a.manifest->'source_artifacts'))) as read
      from jsonb_array_elements(b.attempts) last
      where (last->>'attempt')::int = b.attempt and (last->>'billed')::boolean
        and b.job_type = any('{${typesWhere(({ usage }) => usage.counts === "rows_processed").join()}}')
        and not coalesce(won.usage ? 'rows_processed', false)
      union all
      select (b.details->>'num_pairs')::numeric, '{}' where b.details ? 'num_pairs') counted
    where a.manifest->'measured' ? 'num_rows'
      and counted.rows <> all((a.manifest->>'num_rows')::numeric || counted.read)`,
  "I2 billed without being completed": `
    select job_id from billing_records b join jobs using (job_id)
    where status <> 'completed' and (
      not exists (select from jsonb_array_elements(b.attempts) a where (a->>'billed')::boolean)
      -- An operator can fail a job after its attempt completed. Such a job must have no bill.
      or exists (select from attempts a where a.job_id = b.job_id and a.outcome = 'completed'))`,
  "I3 a job that has ended keeps an artifact's id without the artifact": `
    select job_id, given_id from artifacts join jobs using (job_id)
    where registered_at is null and status in ('completed', 'failed')
      and given_id is distinct from 'released:' || job_id`,
  "I3 completed without exactly one manifest": `
    select job_id, count(a.manifest) from jobs left join artifacts a using (job_id)
    where status = 'completed' and deployment_id is null
    group by job_id having count(a.manifest) <> 1`,
  "I3 a job that placed a deployment again has an artifact of its own": `
    select job_id from artifacts join jobs using (job_id) where deployment_id is not null`,
  "I3 a manifest of a job that failed": `
    select job_id from artifacts join jobs using (job_id)
    where status = 'failed' and manifest is not null`,
  "I3 a manifest that is not the winning attempt's": `
    select a.job_id from artifacts a join attempts won using (job_id, attempt)
    where won.outcome <> 'completed' or (a.manifest->>'attempt')::int <> won.attempt
       or a.manifest->>'worker_id' <> won.worker_id or a.manifest->>'job_id' <> a.job_id`,
  "I4 a job's result is not its winning attempt's": `
    select j.job_id from jobs j left join attempts won
      on won.job_id = j.job_id and won.outcome = 'completed'
    where j.status = 'completed' and (won.job_id is null or j.result is distinct from won.result)`,
  "I4 an attempt after the winning one": `
    select won.job_id from attempts won join attempts later using (job_id)
    where won.outcome = 'completed' and later.attempt > won.attempt`,
  "I5 more attempts than allowed, or a wrong count of dispatched attempts": `
    select job_id, attempts from jobs j where attempts > max_attempts
       or attempts <> (select count(*) from attempts a
                       where a.job_id = j.job_id and a.started_at is not null)`,
  "I5 attempts are not numbered from 1": `
    select job_id from attempts group by job_id having max(attempt) <> count(*)`,
  "I1 a cancelled job without the error code cancelled, or the reverse": `
    select job_id, status, error_code, cancel_requested_at from jobs
    where (cancel_requested_at is not null) <> (error_code is not distinct from 'cancelled')`,
  "I7 a worker ran another tenant's job": `
    select a.job_id, a.worker_id from attempts a join jobs j using (job_id)
    join workers w on w.worker_id = a.worker_id where not w.shared and w.user_id <> j.user_id`,
  "I7 an artifact or bill with another tenant than its job": `
    select job_id from artifacts a join jobs j using (job_id) where a.user_id <> j.user_id
    union all
    select job_id from billing_records b join jobs j using (job_id) where b.user_id <> j.user_id`,
  "a write is stuck": "select workflow_id, activity, tries, error from stuck_writes",
  "a pipeline has not ended":
    "select pipeline_id, status from pipelines where status in ('running', 'waiting_approval')",
  "a pipeline's steps contradict its status": `
    select p.pipeline_id, p.status, s.name, s.status as step from pipelines p
    join pipeline_steps s using (pipeline_id)
    where p.status = 'completed' and not s.optional and s.status <> 'completed'
       or s.status in ('pending', 'waiting_approval', 'running')`,
  "a failed pipeline without a failed step": `
    select pipeline_id from pipelines p where status = 'failed' and not exists (
      select from pipeline_steps s where s.pipeline_id = p.pipeline_id and s.status = 'failed')`,
  "a completed step without a completed job, or the reverse": `
    select s.pipeline_id, s.name, s.status, j.status as job from pipeline_steps s
    left join jobs j using (job_id)
    where s.status = 'completed' and j.status is distinct from 'completed'
       or s.status in ('failed', 'cancelled') and j.status = 'completed'
          and s.error_code is distinct from 'gate_failed'`,
  "a step's job has another tenant, job type or step": `
    select s.pipeline_id, s.name, j.job_id from pipeline_steps s
    join pipelines p using (pipeline_id) join jobs j using (job_id)
    where j.user_id <> p.user_id or j.job_type <> s.job_type
       or not s.reused and (j.pipeline_id, j.pipeline_step) is distinct from (s.pipeline_id, s.name)`,
  "a step began before a step that it needs had ended": `
    select s.pipeline_id, s.name, before.name as needed from pipeline_steps s
    join pipeline_steps before on before.pipeline_id = s.pipeline_id
      and before.name = any(s.needs) and before.run = s.run and before.status <> 'skipped'
    where s.began_at < before.ended_at`,
  "a pipeline's workflow was not woken for a change":
    "select pipeline_id from pipelines where told < asked",
  "a job's events do not end with its status": `
    select j.job_id, j.status, last.status as last_event from jobs j left join lateral (
      select status from job_events e where e.job_id = j.job_id order by event_id desc limit 1) last
      on true where last.status is distinct from j.status`,
  "an event with another tenant than its job, or two consecutive equal events": `
    select job_id from job_events e join jobs j using (job_id) where e.user_id <> j.user_id
    union all
    select job_id from (
      select job_id, status, lag(status) over (partition by job_id order by event_id) as before
      from job_events) pairs where status = before`,
  "a worker is busy without an attempt, or holds one without being busy": `
    select w.worker_id, w.status from workers w left join attempts a
      on a.worker_id = w.worker_id and a.state in ('assigned', 'running')
    where (w.status = 'busy') <> (a.job_id is not null)`,
};

const HOURS_ON_NO_LINE = `
  select j.job_id from jobs j where j.status in ('completed', 'failed')
    and exists (select from attempts a where a.job_id = j.job_id and a.gpu_hours_measured is not null)
    and not exists (select from billing_lines l where l.job_id = j.job_id)
    and not exists (select from billing_records b where b.job_id = j.job_id and b.state = 'accruing')`;

/**
 * Finds jobs whose billing lines and attempts have different totals of GPU hours. The hours of a
 * line are its billed plus its unbilled hours. The hours of an attempt are the smaller of the
 * reported and the measured hours, or the measured hours if the worker reported none.
 */
const HOURS_DIFFER = `
  select j.job_id, used.hours as used, noted.hours as noted from jobs j, lateral (
    select sum(least((usage->>'gpu_hours')::numeric, gpu_hours_measured)) as hours
    from attempts a where a.job_id = j.job_id) used, lateral (
    select sum(gpu_hours + unbilled_gpu_hours) as hours
    from billing_lines l where l.job_id = j.job_id) noted
  where j.status in ('completed', 'failed') and abs(used.hours - noted.hours) > 0.000001
    and not exists (select from billing_records b where b.job_id = j.job_id and b.state = 'accruing')`;

async function recomputeBills({ pool }: World): Promise<string[]> {
  const { differences } = await recompute(pool);
  return differences.map((difference) => `I2 ${difference}`);
}

/** Checks I6: within 60 s, the workflow of every ended job has closed with the job's status. */
async function compareWithTemporal(
  { pool, temporal }: World,
  closed: Set<string>,
): Promise<string[]> {
  const jobs = await all<{ job_id: string; status: string }>(
    pool,
    `select job_id, status from ${ALL_JOBS} jobs where status in ('completed', 'failed')`,
  );
  const open = jobs.filter(({ job_id: id }) => !closed.has(jobWorkflowId(id)));
  return await inParallel(open, async ({ job_id, status }) => {
    const id = jobWorkflowId(job_id);
    const expected = status === "completed" ? "COMPLETED" : "FAILED";
    const what = `the workflow of ${job_id} to be ${expected}`;
    const found = await compareWorkflow(temporal, id, what, (is) => is === expected);
    if (found.length === 0) closed.add(id);
    return found;
  });
}
