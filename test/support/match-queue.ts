import {
  compareAge,
  compareOwn,
  compareText,
  countHeldWorkers,
  type FleetWorker,
  type HeldWorker,
  mayRun,
  type QueuedJob,
  type RankedTenants,
  rankOf,
} from "../../core/fleet/matching";

/**
 * The requirements of a job that fits every worker. They are also the capabilities of the smallest
 * worker.
 */
export const NO_NEEDS = {
  jobType: "audit" as const,
  gpuCount: 0,
  gpuTokens: [],
  memoryGb: 0,
  tags: [] as string[],
  avoid: [] as string[],
};

/** A worker that runs only its owner's jobs, and only those without requirements. */
export const OWN_WORKER = {
  ...NO_NEEDS,
  workerId: "w",
  userId: "ann",
  shared: false,
  jobTypes: null,
  tenants: null,
};

interface Assignment {
  jobId: string;
  workerId: string;
}

/**
 * The scheduling rules as a pure function. services/fleet/assignment-sql.ts has the same rules in
 * SQL.
 *
 * Idle workers choose a job, the least capable worker first, so that a CPU job does not occupy the
 * only GPU while a CPU worker is idle. Each tenant has one candidate: among its jobs that fit the
 * worker, the oldest of those with the highest priority. The worker takes the best candidate. Each
 * criterion of this list is used only if all criteria above it give a tie:
 *
 * 1. The job with the highest rank wins. The rank is the job's priority if the operator has listed
 *    the job's tenant in FORGE_RANKED_TENANTS, and 0 otherwise.
 * 2. On a shared worker, count for each tenant the shared workers that run its jobs. Count only
 *    workers that are at least as capable as this worker. The tenant with the lowest count wins.
 * 3. The oldest job wins.
 *
 * So small jobs never starve a large job of the same priority and rank. A worker that fits the
 * large job takes a small job first only in two cases: the small job is older, or the tenant of the
 * small job has fewer workers by criterion 2.
 */
export function matchQueue(
  queue: QueuedJob[],
  idle: FleetWorker[],
  held: HeldWorker[] = [],
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
        countHeldWorkers(a.userId, worker, holdings) -
          countHeldWorkers(b.userId, worker, holdings) ||
        compareAge(a, b),
    );
    if (!job) continue;
    waiting.delete(job);
    if (worker.shared) holdings.push({ ...worker, userId: job.userId });
    assignments.push({ jobId: job.jobId, workerId: worker.workerId });
  }
  return assignments;
}
