import {
  compareAge,
  compareOwn,
  countHeldWorkers,
  type FleetWorker,
  type HeldWorker,
  mayRun,
  type QueuedJob,
  type RankedTenants,
  rankOf,
} from "../fleet/matching";
import type { Requirements } from "./requirements";

type Job = Pick<QueuedJob, "jobId" | "priority" | "queuedAt">;

/** A requirement group: queued jobs of one tenant with equal requirements, in order. */
export interface QueuedGroup extends Requirements {
  userId: string;
  jobs: Job[];
  /** Only the first jobs of the group were read. All other jobs come after the last of `jobs`. */
  hasMore: boolean;
}

/** The queue as far as it was read. */
export interface Queue {
  groups: QueuedGroup[];
  /** The read stopped at its limit. The queue may have requirement groups that were not read. */
  hasMore: boolean;
}

export interface HoldingWorker extends FleetWorker {
  /** For a shared worker that is busy: the tenant of its job. Otherwise null. */
  serves: string | null;
}

/**
 * Another tenant's queued jobs. "Higher" and "equal" rank mean: compared with the job whose
 * position is computed.
 */
interface Rival {
  /** The number of jobs of higher rank. All of them go first. */
  higher: number;
  /** Jobs of higher rank may exist that were not read. */
  hasMoreHigher: boolean;
  /** The jobs of equal rank, in order. */
  equals: Job[];
  /** If set, `equals` may lack jobs that come after this one, because they were not read. */
  readTo: Job | undefined;
}

/**
 * The job's position among the jobs that compete for the same workers. Assumes that workers become
 * idle one after the other, and that no further job is submitted. Null if jobs that were not read
 * may go first.
 *
 * `heldByOwnTenant` is the number of shared workers that the job's tenant holds, if this number can
 * delay the job: another tenant holds fewer, and has a younger job of equal rank. Otherwise 0.
 */
export function queuePosition(
  job: QueuedJob,
  candidates: HoldingWorker[],
  fleet: HoldingWorker[],
  queue: Queue,
  ranked: RankedTenants,
): { position: number | null; heldByOwnTenant: number } {
  const competing = queue.groups.filter((group) =>
    candidates.some((worker) => mayRun(group, worker)),
  );
  const ownGroups = competing.filter(({ userId }) => userId === job.userId);
  const isBeforeOwn = (other: Job | undefined): boolean =>
    other !== undefined && other.jobId !== job.jobId && compareOwn(other, job) < 0;
  const own = ownGroups.flatMap(({ jobs }) => jobs).filter(isBeforeOwn).length;
  let isKnown =
    !queue.hasMore && !ownGroups.some(({ jobs, hasMore }) => hasMore && isBeforeOwn(jobs.at(-1)));
  const isEarlier = (other: Job): boolean => compareAge(other, job) < 0;
  const held = countHeldBy(candidates, fleet);
  let ahead = own;
  let heldByOwnTenant = 0;
  for (const [userId, rival] of rivalsOf(job, competing, ranked)) {
    const { higher, hasMoreHigher, equals, readTo } = rival;
    const read = readTo ? equals.filter((other) => compareOwn(other, readTo) <= 0) : equals;
    // Among jobs of equal rank, the tenant that holds fewer workers goes first. `jobsAhead`: how
    // many more workers the job's tenant holds than the rival, after the `own` earlier jobs and the
    // rival's `higher` jobs have started. So the rival starts this many jobs of equal rank first.
    // Then both tenants hold equally many workers, and the older of `job` and `next` goes first.
    const jobsAhead = held(job.userId) + own - held(userId) - higher;
    const before = Math.max(0, Math.min(read.length, jobsAhead));
    const next = jobsAhead >= 0 ? read[jobsAhead] : undefined;
    ahead += higher + before + (next && isEarlier(next) ? 1 : 0);
    if (hasMoreHigher || (readTo && read.length <= jobsAhead)) isKnown = false;
    const isYounger = equals.some((other) => !isEarlier(other));
    if (held(userId) < held(job.userId) && isYounger) heldByOwnTenant = held(job.userId);
  }
  return { position: isKnown ? ahead + 1 : null, heldByOwnTenant };
}

function rivalsOf(
  job: QueuedJob,
  competing: QueuedGroup[],
  ranked: RankedTenants,
): Map<string, Rival> {
  const rank = rankOf(job, ranked);
  const rivals = new Map<string, Rival>();
  for (const { userId, jobs, hasMore } of competing) {
    if (userId === job.userId) continue;
    const rival = rivals.get(userId) ?? {
      higher: 0,
      hasMoreHigher: false,
      equals: [],
      readTo: undefined,
    };
    rivals.set(userId, rival);
    const ahead = ({ priority }: Job): number => rankOf({ userId, priority }, ranked) - rank;
    rival.higher += jobs.filter((other) => ahead(other) > 0).length;
    rival.equals.push(...jobs.filter((other) => ahead(other) === 0));
    const last = jobs.at(-1);
    if (!hasMore || !last) continue;
    if (ahead(last) > 0) rival.hasMoreHigher = true;
    const isFirst = !rival.readTo || compareOwn(last, rival.readTo) < 0;
    if (ahead(last) === 0 && isFirst) rival.readTo = last;
  }
  for (const { equals } of rivals.values()) equals.sort(compareOwn);
  return rivals;
}

/**
 * Returns a function that counts the shared workers that a tenant holds. Ignores workers that are
 * less capable than the least capable shared candidate.
 */
function countHeldBy(
  candidates: HoldingWorker[],
  fleet: HoldingWorker[],
): (userId: string) => number {
  const [least] = candidates
    .filter((worker) => worker.shared)
    .sort((a, b) => a.gpuCount - b.gpuCount || a.memoryGb - b.memoryGb);
  if (!least) return () => 0;
  const holdings = fleet.flatMap((worker): HeldWorker[] =>
    worker.serves === null ? [] : [{ ...worker, userId: worker.serves }],
  );
  return (userId) => countHeldWorkers(userId, least, holdings);
}
