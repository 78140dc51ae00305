import { type QueuedJob, type RankedTenants, serves } from "../fleet/matching";
import { type HoldingWorker, type Queue, queuePosition } from "./queue-position";
import { countUnmet, firstUnmet, fits, type Need, type Requirements } from "./requirements";
import type { WorkerStatus } from "./states";

/** Why a job waits, from the longest to the shortest expected wait. */
export const PENDING_CODES = [
  "no_worker",
  "no_worker_fits",
  "no_worker_available",
  "provisioning",
  "over_share",
  "workers_busy",
  "between_attempts",
  "scheduling",
] as const;

export interface PendingReason {
  code: (typeof PENDING_CODES)[number];
  message: string;
  /** For `no_worker_fits`: a requirement that the best-fitting worker does not meet. */
  requirement: { name: string; needed: string | number; available: string | number | null } | null;
  /**
   * The job's place in the queue; 1 is next. Null for all codes except `workers_busy` and
   * `over_share`. Also null if the queue is too long to read all jobs that may go first.
   */
  queue_position: number | null;
}

/** A worker, as the scheduler sees it. */
export interface FleetMember extends HoldingWorker {
  gpuName: string;
  status: WorkerStatus;
  statusReason: string | null;
  draining: boolean;
  /** The worker is polling for a job, or did recently. */
  polls: boolean;
}

export type WaitingJob = QueuedJob;

/** Which workers can run a job. The same for all jobs of one requirement group. */
export interface Eligibility {
  /**
   * Why no job of the group is running yet. Undefined if the reason depends on the queue:
   * `explainPending` then computes the reason.
   */
  reason: PendingReason | undefined;
  /** Matching workers that are idle or busy, and not draining. */
  working: FleetMember[];
}

type Wants = Requirements & { userId: string };

/** Applies the rules of matching.ts in O(fleet) time: call it once per requirement group. */
export function eligibilityOf(job: Wants, fleet: FleetMember[]): Eligibility {
  const visible = fleet.filter((worker) => serves(worker, job.userId));
  const fitting = visible.filter((worker) => fits(job, worker));
  const working = fitting.filter(
    (worker) => (worker.status === "idle" || worker.status === "busy") && !worker.draining,
  );
  const because = (why: PendingReason): Eligibility => ({ reason: why, working });
  if (working.length === 0) {
    const coming = fitting.find((worker) => worker.status === "bootstrapping");
    if (coming) {
      return because(reason("provisioning", `${nameFor(job, coming)} is being set up for it`));
    }
    if (fitting.length > 0) return because(noneAvailable(job, fitting));
    const alive = visible.filter((worker) => worker.status !== "dead");
    if (alive.length === 0) return because(reason("no_worker", "no worker is registered"));
    return because(noneFits(job, alive));
  }
  if (working.some((worker) => worker.status === "idle" && worker.polls)) {
    const message = "a matching worker is idle; the job will be assigned shortly";
    return because(reason("scheduling", message));
  }
  if (working.every((worker) => worker.status === "idle")) {
    const which = nameFor(job, working[0] as FleetMember);
    const others = working.length > 1 ? ` and ${working.length - 1} more` : "";
    const message = `idle, but not polling for work: ${which}${others}`;
    return because(reason("no_worker_available", message));
  }
  return { reason: undefined, working };
}

/**
 * Why this job is not running yet. The job's owner reads the message, so it names no worker of
 * another tenant.
 */
export function explainPending(
  job: QueuedJob,
  fleet: FleetMember[],
  queue: Queue,
  ranked: RankedTenants = [],
  { reason: known, working }: Eligibility = eligibilityOf(job, fleet),
): PendingReason {
  if (known) return known;
  const { position, heldByOwnTenant } = queuePosition(job, working, fleet, queue, ranked);
  const busy = describeBusy(working);
  if (heldByOwnTenant > 0) {
    const message = `${busy}; tenants that hold fewer shared workers than yours (${heldByOwnTenant}) go first`;
    return { ...reason("over_share", message), queue_position: position };
  }
  const nth = position === null ? "the queue is long" : `number ${position} in the queue`;
  return { ...reason("workers_busy", `${busy}; ${nth}`), queue_position: position };
}

function describeBusy(working: FleetMember[]): string {
  const { length: count } = working;
  if (count === 1) return "the matching worker is busy";
  const idle = working.filter(({ status }) => status === "idle").length;
  return idle === 0
    ? `all ${count} matching workers are busy`
    : `${count - idle} of ${count} matching workers are busy, and the others don't poll for work`;
}

/** An attempt has ended and the next one is not queued yet: Temporal is slow or down. */
export const betweenAttempts = (attempts: number): PendingReason =>
  reason("between_attempts", `attempt ${attempts} has ended; the next one is about to be queued`);

const reason = (code: PendingReason["code"], message: string): PendingReason => ({
  code,
  message,
  requirement: null,
  queue_position: null,
});

function noneAvailable(job: Wants, fitting: FleetMember[]): PendingReason {
  const states = fitting.slice(0, 3).map((worker) => {
    const { userId, draining, status, statusReason } = worker;
    const why = userId === job.userId && statusReason !== null ? ` (${statusReason})` : "";
    return `${nameFor(job, worker)} is ${draining && status !== "dead" ? "draining" : status}${why}`;
  });
  const more = fitting.length > states.length ? `, and ${fitting.length - states.length} more` : "";
  const message = `matching workers are not available: ${states.join(", ")}${more}`;
  return reason("no_worker_available", message);
}

/** Other tenants must not see a worker's name. */
const nameFor = (job: Wants, worker: FleetMember): string =>
  worker.userId === job.userId ? worker.workerId : "a shared worker";

interface Ranked {
  worker: FleetMember;
  unmet: number;
}

const isNearer = (one: Ranked, other: Ranked): boolean =>
  (other.unmet - one.unmet ||
    one.worker.gpuCount - other.worker.gpuCount ||
    one.worker.memoryGb - other.worker.memoryGb) > 0;

/** Reports the worker with the fewest unmet requirements; on a tie, the most capable one. */
function noneFits(job: Wants, workers: FleetMember[]): PendingReason {
  const rank = (worker: FleetMember) => ({ worker, unmet: countUnmet(job, worker) });
  const best = workers.map(rank).reduce((a, b) => (isNearer(b, a) ? b : a));
  const nearest = best.worker;
  const name = firstUnmet(job, nearest);
  if (!name) throw new Error("expected a worker with an unmet requirement");
  const requirement = { name, ...GAPS[name](nearest, job) };
  const { needed, available } = requirement;
  const needs = `needs ${UNITS[name](needed)}`;
  const message =
    name === "worker" ? needs : `${needs}; the nearest worker has ${available ?? "none"}`;
  return { ...reason("no_worker_fits", message), requirement };
}

const UNITS: Record<Need, (needed: string | number) => string> = {
  gpu: (needed) => (needed === 1 ? "a GPU" : `${needed} GPUs`),
  gpu_type: (needed) => `a GPU of type ${needed}`,
  memory_gb: (needed) => `${needed} GB of GPU memory`,
  tags: (needed) => `a worker tagged ${needed}`,
  job_type: (needed) => `a worker that takes ${needed} jobs`,
  worker: (needed) => `${needed}`,
};

type Gap = Omit<NonNullable<PendingReason["requirement"]>, "name">;

/** What the job needs and what the worker has, for a requirement that the worker does not meet. */
const GAPS: Record<Need, (worker: FleetMember, needs: Requirements) => Gap> = {
  worker: () => ({
    needed: "another worker than those that serve its deployment or on which it failed",
    available: null,
  }),
  job_type: ({ jobTypes }, { jobType }) => ({
    needed: jobType,
    available: jobTypes?.join(", ") ?? null,
  }),
  gpu_type: ({ gpuName }, { gpuTokens }) => ({ needed: gpuTokens.join(" "), available: gpuName }),
  gpu: (worker, { gpuCount }) => ({ needed: gpuCount, available: worker.gpuCount }),
  memory_gb: (worker, { memoryGb }) => ({ needed: memoryGb, available: worker.memoryGb }),
  tags: (worker, { tags }) => ({
    needed: tags.filter((tag) => !worker.tags.includes(tag)).join(", "),
    available: worker.tags.length > 0 ? worker.tags.join(", ") : null,
  }),
};
