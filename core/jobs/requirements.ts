import type { JobPolicy } from "./job-policy";
import type { JobType } from "./job-types";
import type { Resources } from "./payloads";

/** What a job needs of the worker that runs it. */
export interface Requirements {
  jobType: JobType;
  gpuCount: number;
  /** Lower-case tokens that must all occur in the GPU's name. */
  gpuTokens: string[];
  /** Memory of one GPU, in GB. */
  memoryGb: number;
  /** Tags that the worker must carry, all of them. */
  tags: string[];
  /** Ids of workers that it must not go to, sorted. */
  avoid: string[];
}

/** What a worker offers. */
export interface Capabilities {
  workerId: string;
  /** The job types that its owner lets run there; null: all. */
  jobTypes: string[] | null;
  gpuCount: number;
  gpuTokens: string[];
  memoryGb: number;
  tags: string[];
}

/** "NVIDIA A100-SXM4-80GB" → nvidia, a100, sxm4, 80gb. */
export function gpuTokens(name: string): string[] {
  const tokens = name.toLowerCase().split(/[^a-z0-9]+/);
  return [...new Set(tokens)].filter((token) => token !== "").sort();
}

/** Memory of one GPU as its type's name tells it, in GB; 0 when it does not. */
export const gpuMemoryGb = (type: string): number =>
  Number(/(\d{1,5})\s?gi?b\b/i.exec(type)?.[1] ?? 0);

/**
 * The policy's rule for the type, and the job's own hints: the greater of numbers, both sets of tags,
 * and the job's own GPU type where it names one. A GPU's type or memory can't be had without a GPU, unless
 * the job says that it wants none: then memory says nothing of a GPU. A deployment's region is a tag of
 * its worker.
 */
export function requirementsOf(
  type: JobType,
  resources: Resources,
  policy: JobPolicy,
  { region }: { region?: unknown } = {},
): Requirements {
  const where = typeof region === "string" ? [region] : [];
  const rule = policy[type] ?? {};
  const gpuType = resources.gpu_type ?? rule.gpu_type;
  const ownMemoryGb = resources.gpu === 0 ? 0 : (resources.memory_gb ?? 0);
  const memoryGb = Math.max(ownMemoryGb, rule.memory_gb ?? 0);
  const implied = gpuType !== undefined || memoryGb > 0 ? 1 : 0;
  return {
    jobType: type,
    gpuCount: Math.max(resources.gpu ?? 0, rule.gpu ?? 0, implied),
    gpuTokens: gpuType === undefined ? [] : gpuTokens(gpuType),
    memoryGb,
    tags: [...new Set([...(resources.tags ?? []), ...(rule.tags ?? []), ...where])].sort(),
    avoid: [],
  };
}

/** A card sold as 80 GB says 79.6 or less, counted in GiB and without what its driver keeps. */
export const MEMORY_SHARE = 0.95;

type IsMet = (worker: Capabilities, needs: Requirements) => boolean;

/** What a worker must have, by the names that a job's owner is told. Asked often: none allocates anything. */
const NEEDS = {
  worker: (worker, { avoid }) => !avoid.includes(worker.workerId),
  job_type: ({ jobTypes }, { jobType }) => jobTypes?.includes(jobType) ?? true,
  gpu_type: (worker, needs) => isAmong(needs.gpuTokens, worker.gpuTokens),
  gpu: (worker, needs) => worker.gpuCount >= needs.gpuCount,
  memory_gb: (worker, needs) => worker.memoryGb >= needs.memoryGb * MEMORY_SHARE,
  tags: (worker, needs) => isAmong(needs.tags, worker.tags),
} satisfies Record<string, IsMet>;

export type Need = keyof typeof NEEDS;

const NAMES = Object.keys(NEEDS) as Need[];

function isAmong(few: string[], many: string[]): boolean {
  for (const one of few) if (!many.includes(one)) return false;
  return true;
}

export function fits(needs: Requirements, worker: Capabilities): boolean {
  for (const name of NAMES) if (!NEEDS[name](worker, needs)) return false;
  return true;
}

export function countUnmet(needs: Requirements, worker: Capabilities): number {
  let count = 0;
  for (const name of NAMES) if (!NEEDS[name](worker, needs)) count += 1;
  return count;
}

/** In the order in which they are told. */
export const firstUnmet = (needs: Requirements, worker: Capabilities): Need | undefined =>
  NAMES.find((name) => !NEEDS[name](worker, needs));

/** Jobs of one shape fit the same workers; the scheduler reads its queue shape by shape. */
export function requirementGroupOf(userId: string, needs: Requirements): string {
  const { jobType, gpuCount, memoryGb, gpuTokens: tokens, tags, avoid } = needs;
  const besides = avoid.length > 0 ? [avoid] : [];
  return JSON.stringify([userId, jobType, gpuCount, memoryGb, tokens, tags, ...besides]);
}
