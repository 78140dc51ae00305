import type { JobType } from "./job-types";
import type { Resources } from "./payloads";
import type { JobPolicy } from "./type-policy";

/** What a job needs from the worker that runs it. */
export interface Requirements {
  jobType: JobType;
  gpuCount: number;
  /** Lower-case tokens that must all occur in the GPU's name. */
  gpuTokens: string[];
  /** Memory of one GPU, in GB. */
  memoryGb: number;
  /** The worker must have all of these tags. */
  tags: string[];
  /** Ids of workers that must not run the job, sorted. */
  avoid: string[];
}

/** What a worker offers. */
export interface Capabilities {
  workerId: string;
  /** Job types that the owner allows on this worker; null: all. */
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

/** Memory of one GPU in GB, parsed from its type name; 0 if the name doesn't contain it. */
export const gpuMemoryGb = (type: string): number =>
  Number(/(\d{1,5})\s?gi?b\b/i.exec(type)?.[1] ?? 0);

/**
 * Merges the policy for the job type with the job's own `resources`:
 * - Each number is the larger of the two values. If the job requests 0 GPUs, the job's own
 *   `memory_gb` is ignored.
 * - The worker must have the tags of the policy and of the job. A deployment's region becomes a
 *   required tag.
 * - The job's GPU type replaces the policy's GPU type.
 * - A GPU type or GPU memory implies at least one GPU.
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

/**
 * A worker meets `memory_gb` if its GPU reports at least this fraction of the required memory. A
 * card that is sold as 80 GB may report only 79.6, because the driver reserves a part. Cards with
 * GDDR memory and error correction (T4, A10, L4, L40S) report a sixteenth less: 22.5 of 24 GB.
 */
export const MEMORY_SHARE = 0.93;

type IsMet = (worker: Capabilities, needs: Requirements) => boolean;

/**
 * The check of each requirement, in the order in which unmet requirements are reported. The checks
 * run for each pair of job and worker, so they must not allocate memory.
 */
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

/**
 * Whether the worker meets the requirements. The scheduler applies this rule in SQL
 * (MEETS_REQUIREMENTS in services/fleet/eligibility-sql.ts): change both.
 */
export function fits(needs: Requirements, worker: Capabilities): boolean {
  for (const name of NAMES) if (!NEEDS[name](worker, needs)) return false;
  return true;
}

export function countUnmet(needs: Requirements, worker: Capabilities): number {
  let count = 0;
  for (const name of NAMES) if (!NEEDS[name](worker, needs)) count += 1;
  return count;
}

export const firstUnmet = (needs: Requirements, worker: Capabilities): Need | undefined =>
  NAMES.find((name) => !NEEDS[name](worker, needs));

/** The key of a job's requirement group. The scheduler reads its queue group by group. */
export function requirementGroupOf(userId: string, needs: Requirements): string {
  const { jobType, gpuCount, memoryGb, gpuTokens: tokens, tags, avoid } = needs;
  const avoidPart = avoid.length > 0 ? [avoid] : [];
  return JSON.stringify([userId, jobType, gpuCount, memoryGb, tokens, tags, ...avoidPart]);
}

/** Removes the worker ids of `avoid` from a requirement group's key. */
export function groupWithoutAvoided(group: string): string {
  const parts = JSON.parse(group) as unknown[];
  return parts.length > WITHOUT_AVOIDED ? JSON.stringify(parts.slice(0, WITHOUT_AVOIDED)) : group;
}

/** The number of parts that a requirement group's key has if `avoid` is empty. */
const WITHOUT_AVOIDED = 6;

/** The tenant of a requirement group's jobs. */
export const tenantOfGroup = (group: string): string => (JSON.parse(group) as [string])[0];
