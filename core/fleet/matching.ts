import { type Capabilities, fits, type Requirements } from "../jobs/requirements";

export interface QueuedJob extends Requirements {
  jobId: string;
  userId: string;
  priority: number;
  /** When the job was queued: a larger number is later. The unit does not matter. */
  queuedAt: number;
}

export interface FleetWorker extends Capabilities {
  userId: string;
  /** The worker may serve other tenants than its owner: those in `tenants`, or all. */
  shared: boolean;
  /** If set, the worker runs only jobs of these tenants. Null: `shared` alone decides. */
  tenants: string[] | null;
}

/** A shared worker that runs a job of the tenant `userId`. */
export interface HeldWorker extends Pick<Capabilities, "gpuCount" | "memoryGb"> {
  userId: string;
}

/**
 * Ids of the ranked tenants; `*` means all tenants. The priorities of a ranked tenant's jobs are
 * also compared with the priorities of other tenants' jobs. If a tenant is not ranked, its job
 * priorities only order the tenant's own jobs.
 */
export type RankedTenants = readonly string[];

/** The priority that counts against other tenants' jobs: 0 if the job's tenant is not ranked. */
export const rankOf = (
  { userId, priority }: Pick<QueuedJob, "userId" | "priority">,
  ranked: RankedTenants,
): number => (ranked.includes(userId) || ranked.includes("*") ? priority : 0);

/**
 * True if the worker serves the job's tenant and meets the job's requirements. The scheduler
 * applies this rule in SQL (MAY_RUN in services/fleet/eligibility-sql.ts): change both.
 */
export const mayRun = (job: Requirements & { userId: string }, worker: FleetWorker): boolean =>
  serves(worker, job.userId) && fits(job, worker);

/** True if the worker accepts jobs of this tenant. */
export const serves = (
  worker: Pick<FleetWorker, "userId" | "shared" | "tenants">,
  userId: string,
): boolean =>
  (worker.shared || worker.userId === userId) && (worker.tenants?.includes(userId) ?? true);

/** Number of shared workers that a tenant holds and that are at least as capable as `worker`. */
export const countHeldWorkers = (
  userId: string,
  worker: Pick<Capabilities, "gpuCount" | "memoryGb">,
  held: HeldWorker[],
): number =>
  held.filter(
    (holding) =>
      holding.userId === userId &&
      holding.gpuCount >= worker.gpuCount &&
      holding.memoryGb >= worker.memoryGb,
  ).length;

type Aged = Pick<QueuedJob, "jobId" | "queuedAt">;

/** Sorts older jobs first. */
export const compareAge = (a: Aged, b: Aged): number =>
  a.queuedAt - b.queuedAt || compareText(a.jobId, b.jobId);

/** The order of one tenant's own jobs. */
export const compareOwn = (
  a: Aged & Pick<QueuedJob, "priority">,
  b: Aged & Pick<QueuedJob, "priority">,
): number => b.priority - a.priority || compareAge(a, b);

/** For ASCII text, such as ids, the same order as Postgres's collation "C". */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
