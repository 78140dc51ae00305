import type { TenantScope } from "../../core/accounts/permissions";
import type { WorkerStatus } from "../../core/jobs/states";
import { all, type Queryable } from "../../platform/postgres/pool";
import { isVisibleTo } from "./worker-list";

/** Totals of the workers with the same status, GPU type and draining flag. */
export interface FleetGroup {
  status: WorkerStatus;
  gpu_type: string;
  draining: boolean;
  workers: number;
  gpus: number;
  /**
   * The number of idle or busy workers that report `util`, the utilization of their GPUs in
   * percent.
   */
  reporting: number;
  /** The mean `util` of the workers that `reporting` counts. */
  util: number | null;
  /** `mem_used` and `mem_total` are sums over idle and busy workers. */
  mem_used: number | null;
  mem_total: number | null;
}

export async function readFleetGroups(
  db: Queryable,
  tenantScope: TenantScope,
): Promise<FleetGroup[]> {
  const isLive = "w.status in ('idle', 'busy')";
  return await all<FleetGroup>(
    db,
    `select w.status, w.gpu_name as gpu_type, w.draining, count(*)::int as workers,
            sum(w.gpu_count)::int as gpus, count(w.util) filter (where ${isLive})::int as reporting,
            avg(w.util) filter (where ${isLive}) as util,
            sum(w.mem_used) filter (where ${isLive}) as mem_used,
            sum(w.mem_total) filter (where ${isLive}) as mem_total
     from workers w where ${isVisibleTo("$1")} and w.decommissioned_at is null
     group by 1, 2, 3`,
    [tenantScope],
  );
}
