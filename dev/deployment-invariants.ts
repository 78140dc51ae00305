import type { Client } from "@temporalio/client";
import type pg from "pg";
import { compareRecord } from "../core/billing/recompute";
import { DEPLOYMENT_TYPE } from "../core/deployments/workflow";
import { deploymentWorkflowId } from "../core/workflow-ids";
import { all } from "../platform/postgres/pool";
import type { BillingRow } from "../services/billing/billing-records";
import { LIFETIME_DAYS } from "../services/billing/lifetime";
import { compareWorkflow } from "./compare-workflow";
import { inParallel } from "./in-parallel";

/**
 * SQL: by how much the database's clock has been set back in total. Of two events, the second may
 * therefore have the earlier recorded time, but the difference is at most this interval.
 */
const SET_BACK =
  "(select coalesce(sum(-by_s), 0) * interval '1 second' from clock_steps where by_s < 0)";

const servedFor = (p: string): string =>
  `tstzrange(${p}.serving_at, case when ${p}.ended_at is not null then greatest(${p}.ended_at, ${p}.serving_at) end)`;

/**
 * SQL condition: whether the database's clock may have shown the whole time range `times` twice,
 * because it was set back. If so, two placements that are both recorded as serving in this range
 * may have served one after the other: the second one when the clock showed these times again.
 * Assumes that a change of the clock is recorded within a minute.
 */
const mayBeRepeatedTimes = (times: string): string => `exists (
  select from clock_steps where by_s < 0
    and tstzrange(seen_at - interval '1 minute', seen_at - make_interval(secs => by_s::float8)) @> (${times}))`;

/**
 * Each statement selects invalid states of deployments. None of the statements may return a row,
 * even while jobs are in progress.
 */
export const IMPOSSIBLE_DEPLOYMENTS: Record<string, string> = {
  "D1 a completed deploy job without its deployment, or the reverse": `
    select j.job_id from jobs j left join deployments d using (job_id)
    where j.job_type = '${DEPLOYMENT_TYPE}' and j.deployment_id is null
      and (j.status = 'completed') <> (d.deployment_id is not null)`,
  "D2 an active deployment whose bill is closed, or another whose bill is not": `
    select d.deployment_id, d.status, b.state from deployments d join billing_records b using (job_id)
    where (d.status = 'active') <> (b.state = 'accruing')`,
  "D2 a bill that accrues for no deployment": `
    select job_id from billing_records b left join deployments d using (job_id)
    where b.state = 'accruing' and d.deployment_id is null`,
  "D2 an accrual that does not begin with its attempt's end": `
    select d.deployment_id from deployments d join artifacts r on r.artifact_id = d.deployment_id
    join attempts a on a.job_id = r.job_id and a.attempt = r.attempt
    where d.active_at < a.ended_at or r.job_id <> d.job_id or r.user_id <> d.user_id`,
  "D3 a stopped deployment with a live placement": `
    select deployment_id, placement from placements p join deployments d using (deployment_id)
    where d.status = 'stopped' and p.state <> 'ended'`,
  "D3 a deployment that is not active, but is placed or served": `
    select deployment_id, placement from placements p join deployments d using (deployment_id)
    where d.status <> 'active' and p.state in ('starting', 'serving')`,
  "D3 a placement that ended after its deployment, or began after its stop": `
    select deployment_id, placement from placements p join deployments d using (deployment_id)
    where p.ended_at > d.stopped_at + ${SET_BACK} or p.created_at > d.stop_requested_at + ${SET_BACK}`,
  "D3 a placement that ended before it began": `
    select deployment_id, placement from placements where ended_at < created_at - ${SET_BACK}`,
  "D4 more servers than max_replicas": `
    select d.deployment_id, count(*) from deployments d join placements p using (deployment_id)
    where p.state = 'serving' group by d.deployment_id, d.max_replicas having count(*) > d.max_replicas`,
  "D5 placements of one deployment at one time on one worker": `
    select a.deployment_id, a.placement, b.placement as other from placements a join placements b
      on b.deployment_id = a.deployment_id and b.worker_id = a.worker_id and b.placement > a.placement
    where ${servedFor("a")} && ${servedFor("b")}
      and not ${mayBeRepeatedTimes(`${servedFor("a")} * ${servedFor("b")}`)}`,
  "D5 a live placement on a dead or decommissioned worker": `
    select deployment_id, placement, worker_id from placements p join workers w using (worker_id)
    where p.state in ('serving', 'stopping')
      and (w.status = 'dead' or w.decommissioned_at is not null)`,
  "D6 placements are not numbered from 1": `
    select deployment_id from placements group by deployment_id having max(placement) <> count(*)`,
  "D6 a placement and its job don't name each other": `
    select p.deployment_id, p.placement from placements p join jobs j using (job_id)
    join deployments d on d.deployment_id = p.deployment_id
    where p.job_id <> d.job_id
      and (j.deployment_id is distinct from p.deployment_id or j.placement is distinct from p.placement)`,
  "D7 a bill of a job that only placed a deployment again": `
    select job_id from billing_records b join jobs j using (job_id)
    where j.deployment_id is not null and (b.total_cost_usd <> 0 or b.state <> 'final')`,
  "I7 a deployment on another tenant's worker": `
    select p.deployment_id, p.worker_id from placements p join deployments d using (deployment_id)
    join workers w on w.worker_id = p.worker_id where not w.shared and w.user_id <> d.user_id`,
};

interface ClosedRow extends BillingRow {
  deployment_id: string;
  days: number;
}

/**
 * Checks D2 for deployments that are no longer active: the bill must be for the time from the
 * result of the deploy job to the stop request. Changes of the database's clock in this time must
 * not affect the bill.
 */
export async function recomputeAccruals(pool: pg.Pool): Promise<string[]> {
  const closed = await all<ClosedRow>(
    pool,
    `select d.deployment_id, b.*, ${LIFETIME_DAYS} as days
     from deployments d join billing_records b using (job_id) where d.status <> 'active'`,
  );
  return closed.flatMap((row) => {
    const metrics = { ...row.metrics, deployment_lifetime_days: row.days };
    const isRight =
      row.metrics.deployment_lifetime_days === row.days &&
      compareRecord({ ...row, metrics }).length === 0;
    return isRight ? [] : [`D2 a bill does not match the deployment's time: ${row.deployment_id}`];
  });
}

/**
 * Checks I6: within 60 s, the workflow of a stopped deployment has completed, and that of any other
 * deployment runs.
 */
export async function compareDeployments(pool: pg.Pool, temporal: Client): Promise<string[]> {
  const rows = await all<{ deployment_id: string; status: string }>(
    pool,
    // `worker_lost` is from old releases, in which deployments had no workflow.
    "select deployment_id, status from deployments where stopped_by is distinct from 'worker_lost'",
  );
  return await inParallel(rows, async ({ deployment_id: id, status }) => {
    const expected = status === "stopped" ? "COMPLETED" : "RUNNING";
    const what = `the workflow of ${id} to be ${expected}`;
    const isRight = (is: string): boolean => is === expected;
    return await compareWorkflow(temporal, deploymentWorkflowId(id), what, isRight);
  });
}
