/** The six kinds of work that Forge knows (spec.md, 1.1). */
export const JOB_TYPES = ["generate", "audit", "distill", "train", "evaluate", "deploy"] as const;
export type JobType = (typeof JOB_TYPES)[number];

export function isJobType(value: string): value is JobType {
  return (JOB_TYPES as readonly string[]).includes(value);
}
