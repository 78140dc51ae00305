import type { TenantScope } from "../../core/accounts/principal";
import type { WorkerStatus } from "../../core/jobs/states";
import { listPage, type Page, Where, type WithPosition } from "../../platform/postgres/pages";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { anyContains, contains, either } from "../../platform/postgres/text-search";
import type { WorkerRow } from "./workers";

/** A worker as people see it; a decommissioned one is not seen. */
export interface ShownWorkerRow extends WorkerRow {
  /** Of another tenant's shared worker only the viewer's own. */
  current_job_id: string | null;
  /** False: a shared worker of somebody else. */
  is_own: boolean;
}

const WITH_JOB = `workers w left join attempts a
  on a.worker_id = w.worker_id and a.state in ('assigned', 'running')`;

/** What viewer `viewer` sees of worker `w`. */
const shownTo = (tenantScope: string): string => `w.*,
  ${tenantScope}::text is null or w.user_id = ${tenantScope} as is_own,
  case when ${tenantScope}::text is null or w.user_id = ${tenantScope} or exists (
    select from jobs j where j.job_id = a.job_id and j.user_id = ${tenantScope}) then a.job_id end as current_job_id`;

/** Its own, and shared ones that may get its jobs. */
export const isShownTo = (tenantScope: string): string =>
  `(${tenantScope}::text is null or w.user_id = ${tenantScope}
    or w.shared and coalesce(${tenantScope} = any(w.tenants), true))`;

export interface WorkerFilter {
  statuses?: WorkerStatus[] | undefined;
  /** A part of its GPU's name. */
  gpu?: string | undefined;
  /** A part of its id or of a tag. */
  text?: string | undefined;
}

/** One page of the workers that this viewer owns, and of shared ones, the latest to be registered first. */
export async function listWorkers(
  db: Queryable,
  tenantScope: TenantScope,
  filter: WorkerFilter,
  page: Page,
): Promise<WithPosition<ShownWorkerRow>[]> {
  return await listPage<ShownWorkerRow>(db, {
    select: shownTo("$1"),
    from: WITH_JOB,
    order: ["w.registered_at", "w.worker_id"],
    where: new Where()
      .with(tenantScope, isShownTo)
      .and("w.decommissioned_at is null")
      .also(filter.statuses, (statuses) => `w.status = any(${statuses})`)
      .also(filter.gpu, (text) => contains("w.gpu_name", text))
      .also(filter.text, (text) =>
        either(contains("w.worker_id", text), anyContains("w.tags", text)),
      ),
    page,
  });
}

/** One that this viewer owns, or a shared one, unless it is decommissioned. */
export async function findShownWorker(
  db: Queryable,
  workerId: string,
  tenantScope: TenantScope,
): Promise<ShownWorkerRow | undefined> {
  return await maybeOne<ShownWorkerRow>(
    db,
    `select ${shownTo("$2")} from ${WITH_JOB}
     where w.worker_id = $1 and ${isShownTo("$2")}
       and w.decommissioned_at is null`,
    [workerId, tenantScope],
  );
}

/**
 * One that this viewer may change: its own.
 *
 * @param gone whether a decommissioned one is found too.
 */
export async function findWorker(
  db: Queryable,
  workerId: string,
  tenantScope: TenantScope,
  gone = false,
): Promise<ShownWorkerRow | undefined> {
  return await maybeOne<ShownWorkerRow>(
    db,
    `select ${shownTo("$2")} from ${WITH_JOB}
     where w.worker_id = $1 and ($2::text is null or w.user_id = $2)
       and ($3 or w.decommissioned_at is null)`,
    [workerId, tenantScope, gone],
  );
}
