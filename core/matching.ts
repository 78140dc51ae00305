import { type Capabilities, fits, type Requirements } from "./requirements";

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

/**
 * The scheduling rules as a pure model; infra/database/matching.ts says the same in SQL.
 *
 * Idle workers choose, the least capable first, so that a CPU job does not sit on the only GPU while a
 * CPU is idle. Each takes the first job that it fits: by priority; then, if the worker is shared, of the
 * tenant that holds the fewest shared workers as capable as it or more; then by age.
 *
 * So a large job is never starved by small ones of its priority: within its tenant it is overtaken by
 * older jobs only, and by other tenants only while these hold less of what it waits for. What its tenant
 * holds of smaller workers is not held against it.
 */
export function matchQueue(
  queue: QueuedJob[],
  idle: FleetWorker[],
  held: Holding[] = [],
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
    const [job] = [...waiting]
      .filter((each) => mayRun(each, worker))
      .sort(
        (a, b) =>
          b.priority - a.priority ||
          sharesHeld(a.userId, worker, holdings) - sharesHeld(b.userId, worker, holdings) ||
          a.queuedAt - b.queuedAt ||
          compareText(a.jobId, b.jobId),
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

/** By code point, as Postgres orders text under collation "C". */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
