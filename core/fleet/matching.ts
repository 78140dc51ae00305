import { type Capabilities, fits, type Requirements } from "../jobs/requirements";

export interface QueuedJob extends Requirements {
  jobId: string;
  userId: string;
  priority: number;
  /** Any number that increases with time. */
  queuedAt: number;
}

export interface FleetWorker extends Capabilities {
  userId: string;
  /** The worker serves all tenants. */
  shared: boolean;
  /** Tenants that the owner allows; null: all that the worker serves. */
  tenants: string[] | null;
}

/** A shared worker that runs a job of this tenant. */
export interface Holding extends Pick<Capabilities, "gpuCount" | "memoryGb"> {
  userId: string;
}

export interface Assignment {
  jobId: string;
  workerId: string;
}

/** Tenants whose priorities also count against other tenants on shared workers; `*`: all. */
export type RankedTenants = readonly string[];

/** A job's priority compared with jobs of other tenants; 0 unless its tenant is ranked. */
export const rankOf = (
  { userId, priority }: Pick<QueuedJob, "userId" | "priority">,
  ranked: RankedTenants,
): number => (ranked.includes(userId) || ranked.includes("*") ? priority : 0);

/**
 * The scheduling rules as a pure function. services/fleet/matching.ts has the same rules in SQL.
 *
 * Idle workers choose a job, the least capable worker first, so that a CPU job does not occupy the
 * only GPU while a CPU worker is idle. Each tenant's candidate is its fitting job with the highest
 * priority, then the oldest. The worker takes the candidate with:
 *
 * 1. the highest rank (0, unless the operator ranks the tenant's priorities against other tenants);
 * 2. on a shared worker, the tenant with the fewest shared workers that are at least as capable;
 * 3. the greatest age.
 *
 * So small jobs of the same priority never starve a large job: of its tenant's jobs only older ones
 * go first, and other tenants go first only while they hold fewer workers of the required size.
 */
export function matchQueue(
  queue: QueuedJob[],
  idle: FleetWorker[],
  held: Holding[] = [],
  ranked: RankedTenants = [],
): Assignment[] {
  const inOrder = [...idle].sort(
    (a, b) =>
      a.gpuCount - b.gpuCount ||
      a.memoryGb - b.memoryGb ||
      Number(a.shared) - Number(b.shared) ||
      compareText(a.workerId, b.workerId),
  );
  const holdings = [...held];
  const waiting = new Set(queue);
  const assignments: Assignment[] = [];
  for (const worker of inOrder) {
    const first = new Map<string, QueuedJob>();
    for (const job of waiting) {
      const other = first.get(job.userId);
      if (mayRun(job, worker) && (!other || compareOwn(job, other) < 0)) first.set(job.userId, job);
    }
    const [job] = [...first.values()].sort(
      (a, b) =>
        rankOf(b, ranked) - rankOf(a, ranked) ||
        sharesHeld(a.userId, worker, holdings) - sharesHeld(b.userId, worker, holdings) ||
        compareAge(a, b),
    );
    if (!job) continue;
    waiting.delete(job);
    if (worker.shared) holdings.push({ ...worker, userId: job.userId });
    assignments.push({ jobId: job.jobId, workerId: worker.workerId });
  }
  return assignments;
}

/** True if the worker serves the job's tenant and meets the job's requirements. */
export const mayRun = (job: Requirements & { userId: string }, worker: FleetWorker): boolean =>
  serves(worker, job.userId) && fits(job, worker);

/** True if the worker accepts jobs of this tenant. */
export const serves = (
  worker: Pick<FleetWorker, "userId" | "shared" | "tenants">,
  userId: string,
): boolean =>
  (worker.shared || worker.userId === userId) && (worker.tenants?.includes(userId) ?? true);

/** Number of shared workers that a tenant holds and that are at least as capable as this one. */
export const sharesHeld = (
  userId: string,
  worker: Pick<Capabilities, "gpuCount" | "memoryGb">,
  held: Holding[],
): number =>
  held.filter(
    (holding) =>
      holding.userId === userId &&
      holding.gpuCount >= worker.gpuCount &&
      holding.memoryGb >= worker.memoryGb,
  ).length;

type Aged = Pick<QueuedJob, "jobId" | "queuedAt">;

/** Older first. */
export const compareAge = (a: Aged, b: Aged): number =>
  a.queuedAt - b.queuedAt || compareText(a.jobId, b.jobId);

/** The order of one tenant's own jobs. */
export const compareOwn = (
  a: Aged & Pick<QueuedJob, "priority">,
  b: Aged & Pick<QueuedJob, "priority">,
): number => b.priority - a.priority || compareAge(a, b);

/** By code point, like Postgres with collation "C". */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
