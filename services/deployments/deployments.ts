import type { TenantScope } from "../../core/accounts/permissions";
import type { LivedUntil, MonthShare } from "../../core/billing/accrual";
import type { DeploymentStatus } from "../../core/deployments/workflow";
import { LOCKED_AT } from "../../platform/postgres/clock";
import { listPage, type Page, Where } from "../../platform/postgres/pages";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ARTIFACTS, hasId, MAX_OWNERS } from "../artifacts/artifacts";
import type { BillingRow } from "../billing/billing-records";
import { LIFETIME_BY_MONTH, LIFETIME_DAYS, WRITTEN_SHARES } from "../billing/lifetime";

/**
 * A row of `deployments`. Lock it before you change one of its placements. Lock order: job,
 * attempt, worker, deployment, placement.
 */
export interface DeploymentRow {
  /** Its artifact's storage id. */
  deployment_id: string;
  user_id: string;
  job_id: string;
  checkpoint_id: string | null;
  status: DeploymentStatus;
  min_replicas: number;
  max_replicas: number;
  active_at: Date;
  stop_requested_at: Date | null;
  stopped_at: Date | null;
  stopped_by: string | null;
  created_at: Date;
  failures: number;
  next_try_at: Date | null;
  trouble: string | null;
  asked: number;
  told: number;
}

/** A deployment as the API shows it, with the inputs of its bill. */
export interface ShownDeploymentRow extends DeploymentRow {
  /** The id that the tenant uses. */
  artifact_id: string;
  storage_id: string;
  lifetime_days: number;
  /** The inputs of its cost. */
  bill: Pick<BillingRow, "metrics" | "gpu_tokens" | "attempts" | "rate_card">;
}

const SHOWN = `d.*, ${LIFETIME_DAYS} as lifetime_days, d.deployment_id as storage_id,
  (select r.artifact_id from ${ARTIFACTS} r where r.storage_id = d.deployment_id) as artifact_id,
  (select jsonb_build_object('metrics', b.metrics, 'gpu_tokens', b.gpu_tokens, 'attempts', b.attempts,
                             'rate_card', b.rate_card)
   from billing_records b where b.job_id = d.job_id) as bill`;

/**
 * Finds deployments by artifact id, or by storage id, which is also the deployment's id. At most
 * one per tenant.
 */
export async function findDeployments(db: Queryable, id: string, tenantScope: TenantScope) {
  return await all<ShownDeploymentRow>(
    db,
    `select ${SHOWN} from deployments d
     where d.deployment_id in (select storage_id from ${ARTIFACTS} r where ${hasId("array[$1::text]")})
       and ($2::text is null or d.user_id = $2)
     order by d.user_id limit ${MAX_OWNERS}`,
    [id, tenantScope],
  );
}

/** One page of deployments, newest first. */
export async function listDeployments(
  db: Queryable,
  tenantScope: TenantScope,
  statuses: DeploymentStatus[] | undefined,
  page: Page,
) {
  return await listPage<ShownDeploymentRow>(db, {
    select: SHOWN,
    from: "deployments d",
    order: ["created_at", "deployment_id"],
    where: new Where()
      .inTenantScope(tenantScope)
      .andIfSet(statuses, (given) => `status = any(${given})`),
    page,
  });
}

export async function lockDeployment(db: Queryable, deploymentId: string) {
  return await maybeOne<DeploymentRow>(
    db,
    "select * from deployments where deployment_id = $1 for no key update",
    [deploymentId],
  );
}

/**
 * Inserts the deployment of a completed deploy job, with the numbers of replicas in the job's
 * payload. From then on, the deployment accrues cost and can be stopped.
 */
export async function insertDeployment(
  db: Queryable,
  deploymentId: string,
  jobId: string,
  attempt: number,
): Promise<void> {
  await execute(
    db,
    `insert into deployments (deployment_id, user_id, job_id, checkpoint_id, min_replicas, max_replicas,
                              active_at)
     select $1, j.user_id, j.job_id, j.payload->>'checkpoint_id', want.least,
            greatest(want.least, coalesce((j.payload->>'max_replicas')::int, 1)), greatest(now(), a.ended_at)
     from jobs j join attempts a using (job_id)
     cross join lateral (select coalesce((j.payload->>'min_replicas')::int, 1) as least) want
     where j.job_id = $2 and a.attempt = $3`,
    [deploymentId, jobId, attempt],
  );
}

/** The inputs of the final bill of a deployment that was just stopped. */
export interface StoppedRow extends BillingRow {
  lived: LivedUntil[];
  /** The shares of the bill that already have a billing line, one per month. */
  written: MonthShare[];
}

/**
 * Marks an active deployment as stopping by one compare-and-set, which ends its accrual. Undefined
 * if the deployment is not active. The time for which this statement waits for the row's lock is
 * not billed: the trigger `note_clock_offset` adds this time to the clock offset of the stop, which
 * the billed lifetime excludes (lifetime.ts).
 */
export async function markStopping(db: Queryable, deploymentId: string, stoppedBy: string) {
  return await maybeOne<StoppedRow>(
    db,
    `update deployments d set status = 'stopping', stop_requested_at = greatest(${LOCKED_AT}, d.active_at),
            stopped_by = $2, asked = asked + 1, next_try_at = null, trouble = null
     from billing_records b
     where d.deployment_id = $1 and d.status = 'active' and b.job_id = d.job_id
     returning b.*, ${LIFETIME_BY_MONTH} as lived, ${WRITTEN_SHARES} as written`,
    [deploymentId, stoppedBy],
  );
}

/**
 * Marks a stopping deployment stopped if all its placements have ended. The last write of a
 * deployment.
 */
export async function markStopped(db: Queryable, deploymentId: string): Promise<boolean> {
  const changed = await execute(
    db,
    `update deployments d set status = 'stopped', stopped_at = greatest(${LOCKED_AT}, stop_requested_at)
     where deployment_id = $1 and status = 'stopping' and not exists (
       select from placements p where p.deployment_id = d.deployment_id and p.state <> 'ended')`,
    [deploymentId],
  );
  return changed === 1;
}

export async function setReplicas(
  db: Queryable,
  deploymentId: string,
  min: number,
  max: number,
): Promise<void> {
  await execute(
    db,
    `update deployments set min_replicas = $2, max_replicas = $3, asked = asked + 1
     where deployment_id = $1 and status = 'active'`,
    [deploymentId, min, max],
  );
}

/** Records a failed placement, and delays the next one by an exponential backoff. */
export async function recordPlacementFailure(
  db: Queryable,
  deploymentId: string,
  trouble: string,
  retryS: number,
): Promise<void> {
  await execute(
    db,
    `update deployments set failures = failures + 1, trouble = $2, asked = asked + 1,
            next_try_at = now() + ${backoff("failures", "$3")}
     where deployment_id = $1 and status = 'active'`,
    [deploymentId, trouble, retryS],
  );
}

/**
 * SQL: the delay of the next placement. The delay doubles with each failure, from `retryS` up to 30
 * times `retryS`. With the default `retryS`, this is from 10 s to 5 min.
 */
export const backoff = (failures: string, retryS: string): string =>
  `make_interval(secs => ${retryS}::float8 * least(30, 2 ^ least(${failures}, 10)))`;

/** Milliseconds until the next placement may begin; 0 if it may begin now. */
export async function msUntilNextTry(db: Queryable, deploymentId: string): Promise<number> {
  const row = await maybeOne<{ ms: number }>(
    db,
    `select ceil(extract(epoch from next_try_at - clock_timestamp()) * 1000)::int as ms
     from deployments where deployment_id = $1 and next_try_at > clock_timestamp()`,
    [deploymentId],
  );
  return row?.ms ?? 0;
}

/**
 * Clears the backoff and `trouble` (the last failure) of a deployment that serves. Requests a wake
 * of its workflow.
 */
export async function recordServing(db: Queryable, deploymentId: string): Promise<void> {
  await execute(
    db,
    `update deployments set asked = asked + 1, trouble = null, next_try_at = null
     where deployment_id = $1`,
    [deploymentId],
  );
}

/**
 * A tenant's deployment, and one of its servers to send requests to; `server` is null if there is
 * none.
 */
export interface OwnDeployment {
  deployment_id: string;
  status: DeploymentStatus;
  server: { url: string; token: string | null } | null;
}

/** The tenant's deployments among the given ids. */
export async function findOwnDeployments(db: Queryable, userId: string, ids: string[]) {
  return await all<OwnDeployment>(
    db,
    `select d.deployment_id, d.status, (
       select jsonb_build_object('url', p.inference_url, 'token', p.token) from placements p
       where p.deployment_id = d.deployment_id and p.state = 'serving' and p.inference_url is not null
       order by not p.healthy, p.missing_since is not null, random() limit 1) as server
     from deployments d where d.user_id = $1 and d.deployment_id = any($2)`,
    [userId, ids],
  );
}

export async function findDeployment(db: Queryable, deploymentId: string) {
  return await maybeOne<DeploymentRow>(db, "select * from deployments where deployment_id = $1", [
    deploymentId,
  ]);
}
