import { type Capabilities, fits, type Requirements } from "../jobs/requirements";

export interface QueuedJob extends Requirements {
  jobId: string;
  userId: string;
  priority: number;
  /** Any number that grows with time. */
  queuedAt: number;
}

export interface FleetWorker extends Capabilities {
  userId: string;
  /** Serves every tenant. */
  shared: boolean;
  /** Of those, only the ones that its owner lets in; null: all. */
  tenants: string[] | null;
}

/** A shared worker that works for a tenant right now. */
export interface Holding extends Pick<Capabilities, "gpuCount" | "memoryGb"> {
  userId: string;
}

export interface Assignment {
  jobId: string;
  workerId: string;
}

/** Tenants whose priorities count against other tenants' on shared workers; `*` stands for all. */
export type RankedTenants = readonly string[];

/** What a job's priority counts against jobs of other tenants. */
export const rankOf = (
  { userId, priority }: Pick<QueuedJob, "userId" | "priority">,
  ranked: RankedTenants,
): number => (ranked.includes(userId) || ranked.includes("*") ? priority : 0);

/**
 * The scheduling rules as a pure model; services/fleet/matching.ts says the same in SQL.
 *
 * Idle workers choose, the least capable first, so that a CPU job does not sit on the only GPU while a
 * CPU is idle. Of each tenant the first job that fits is the one of the highest priority, then the oldest.
 * Of these the worker takes that of the highest rank (0, unless the operator lets the tenant's priorities
 * count against others'); then, if it is shared, of the tenant that holds the fewest shared workers as
 * capable as it or more; then the oldest.
 *
 * So a large job is never starved by small ones of its priority: within its tenant it is overtaken by
 * older jobs only, and by other tenants only while these hold less of what it waits for. What its tenant
 * holds of smaller workers is not held against it.
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

/** Whether this worker may run this tenant's job, and can. */
export const mayRun = (job: Requirements & { userId: string }, worker: FleetWorker): boolean =>
  serves(worker, job.userId) && fits(job, worker);

/** Whether a tenant's jobs may run on this worker at all. */
export const serves = (
  worker: Pick<FleetWorker, "userId" | "shared" | "tenants">,
  userId: string,
): boolean =>
  (worker.shared || worker.userId === userId) && (worker.tenants?.includes(userId) ?? true);

/** How many shared workers a tenant holds that are as capable as this one or more. */
export const sharesHeld = (
  userId: string,
  than: Pick<Capabilities, "gpuCount" | "memoryGb">,
  held: Holding[],
): number =>
  held.filter(
    (holding) =>
      holding.userId === userId &&
      holding.gpuCount >= than.gpuCount &&
      holding.memoryGb >= than.memoryGb,
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

/** By code point, as Postgres orders text under collation "C". */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
