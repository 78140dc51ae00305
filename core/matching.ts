import { type Capabilities, fits, type Requirements } from "./requirements";

export interface QueuedJob extends Requirements {
  jobId: string;
  userId: string;
  priority: number;
  /** Any number that grows with time. */
  queuedAt: number;
}

export interface IdleWorker extends Capabilities {
  workerId: string;
  userId: string;
  shared: boolean;
}

export interface Assignment {
  jobId: string;
  workerId: string;
}

/**
 * The scheduling rules as a pure model; infra/database/matching.ts says the same in SQL.
 *
 * Jobs in order of priority, then age, each take the least capable idle worker that fits, so that a
 * CPU job does not sit on the only GPU.
 */
export function matchQueue(queue: QueuedJob[], workers: IdleWorker[]): Assignment[] {
  const free = [...workers].sort(
    (a, b) =>
      a.gpuCount - b.gpuCount || a.memoryGb - b.memoryGb || compareText(a.workerId, b.workerId),
  );
  const inOrder = [...queue].sort(
    (a, b) => b.priority - a.priority || a.queuedAt - b.queuedAt || compareText(a.jobId, b.jobId),
  );
  const assignments: Assignment[] = [];
  for (const job of inOrder) {
    const index = free.findIndex(
      (worker) => (worker.shared || worker.userId === job.userId) && fits(job, worker),
    );
    if (index < 0) continue;
    const [worker] = free.splice(index, 1);
    if (worker) assignments.push({ jobId: job.jobId, workerId: worker.workerId });
  }
  return assignments;
}

/** By code point, as Postgres orders text under collation "C". */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
