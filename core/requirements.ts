import type { JobType } from "./job-types";
import type { Resources } from "./payloads";

/** What a job needs of the worker that runs it. */
export interface Requirements {
  gpuCount: number;
  /** Lower-case tokens that must all occur in the GPU's name. */
  gpuTokens: string[];
  /** Memory of one GPU, in GB. */
  memoryGb: number;
}

/** What a worker offers. */
export interface Capabilities {
  gpuCount: number;
  gpuTokens: string[];
  memoryGb: number;
}

export interface CapabilityPolicy {
  /** False only on the embedded stack of a machine without a GPU. */
  trainNeedsGpu: boolean;
}

/** "NVIDIA A100-SXM4-80GB" → nvidia, a100, sxm4, 80gb. */
export function gpuTokens(name: string): string[] {
  const tokens = name.toLowerCase().split(/[^a-z0-9]+/);
  return [...new Set(tokens)].filter((token) => token !== "").sort();
}

/** The static resource rules of spec.md 4.7, and the job's own hints. */
export function requirementsOf(
  type: JobType,
  resources: Resources,
  policy: CapabilityPolicy,
): Requirements {
  const asksForGpu =
    (resources.gpu ?? 0) > 0 || resources.gpu_type !== undefined || (resources.memory_gb ?? 0) > 0;
  const needsGpu = asksForGpu || (type === "train" && policy.trainNeedsGpu);
  return {
    gpuCount: Math.max(resources.gpu ?? 0, needsGpu ? 1 : 0),
    gpuTokens: resources.gpu_type === undefined ? [] : gpuTokens(resources.gpu_type),
    memoryGb: resources.memory_gb ?? 0,
  };
}

export function fits(needs: Requirements, worker: Capabilities): boolean {
  return (
    worker.gpuCount >= needs.gpuCount &&
    worker.memoryGb >= needs.memoryGb &&
    needs.gpuTokens.every((token) => worker.gpuTokens.includes(token))
  );
}

/** Jobs of one shape fit the same workers; the scheduler reads its queue shape by shape. */
export function shapeOf(userId: string, needs: Requirements): string {
  return [userId, needs.gpuCount, needs.memoryGb, ...needs.gpuTokens].join("|");
}
