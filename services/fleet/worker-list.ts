import type { TenantScope } from "../../core/accounts/permissions";
import type { WorkerStatus } from "../../core/jobs/states";
import { listPage, type Page, Where } from "../../platform/postgres/pages";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { anyContains, contains, either } from "../../platform/postgres/text-search";
import type { WorkerRow } from "./workers";

/**
 * A worker as the API shows it to a tenant scope: to one tenant, or to an admin, who sees all
 * tenants.
 */
export interface ShownWorkerRow extends WorkerRow {
  /**
   * The job that the worker holds. On another tenant's shared worker, it is shown only if the job
   * belongs to the tenant scope; otherwise null.
   */
  current_job_id: string | null;
  /** False for another tenant's shared worker. */
  is_own: boolean;
}

const WITH_JOB = `workers w left join attempts a
  on a.worker_id = w.worker_id and a.state in ('assigned', 'running')`;

/** SQL: the columns of worker `w` that a key with this tenant scope may see. */
const visibleColumns = (tenantScope: string): string => `w.*,
  ${tenantScope}::text is null or w.user_id = ${tenantScope} as is_own,
  case when ${tenantScope}::text is null or w.user_id = ${tenantScope} or exists (
    select from jobs j where j.job_id = a.job_id and j.user_id = ${tenantScope}) then a.job_id end as current_job_id`;

/**
 * SQL: whether worker `w` belongs to the tenant scope, or is shared and may run the jobs of the
 * tenant scope.
 */
export const isVisibleTo = (tenantScope: string): string =>
  `(${tenantScope}::text is null or w.user_id = ${tenantScope}
    or w.shared and coalesce(${tenantScope} = any(w.tenants), true))`;

export interface WorkerFilter {
  statuses?: WorkerStatus[] | undefined;
  /** Matches a part of the GPU's name. */
  gpu?: string | undefined;
  /** Matches a part of the id or of a tag. */
  text?: string | undefined;
}

/** One page of the workers that the tenant scope may see, newest registration first. */
export async function listWorkers(
  db: Queryable,
  tenantScope: TenantScope,
  filter: WorkerFilter,
  page: Page,
) {
  return await listPage<ShownWorkerRow>(db, {
    select: visibleColumns("$1"),
    from: WITH_JOB,
    order: ["w.registered_at", "w.worker_id"],
    where: new Where()
      .andParameter(tenantScope, isVisibleTo)
      .and("w.decommissioned_at is null")
      .andIfSet(filter.statuses, (statuses) => `w.status = any(${statuses})`)
      .andIfSet(filter.gpu, (text) => contains("w.gpu_name", text))
      .andIfSet(filter.text, (text) =>
        either(contains("w.worker_id", text), anyContains("w.tags", text)),
      ),
    page,
  });
}

/** A worker that the tenant scope may see, unless it is decommissioned. */
export async function findShownWorker(db: Queryable, workerId: string, tenantScope: TenantScope) {
  return await maybeOne<ShownWorkerRow>(
    db,
    `select ${visibleColumns("$2")} from ${WITH_JOB}
     where w.worker_id = $1 and ${isVisibleTo("$2")}
       and w.decommissioned_at is null`,
    [workerId, tenantScope],
  );
}

/** A worker that the tenant scope may change: one of its own. */
export async function findWorker(
  db: Queryable,
  workerId: string,
  tenantScope: TenantScope,
  includeDecommissioned = false,
) {
  return await maybeOne<ShownWorkerRow>(
    db,
    `select ${visibleColumns("$2")} from ${WITH_JOB}
     where w.worker_id = $1 and ($2::text is null or w.user_id = $2)
       and ($3 or w.decommissioned_at is null)`,
    [workerId, tenantScope, includeDecommissioned],
  );
}
